// Package shellrules decides whether an agent may run a shell command line, by matching the beginning of each command
// in it against lists of allowed and denied commands. It parses the line as a shell does, so commands after && or |, in
// $(…), in loops, behind env, timeout or xargs, and in the script of sh -c are judged like a single command.
//
// The package is not a security boundary: an allowed program can start any other program, and a line can hide what it
// runs. It prevents mistakes, and its refusals list the allowed commands.
//
// Start here: [Rules.Judge]. [Calls] splits lines into commands; [BaseCommands] and [DetectCommands] return the
// commands that a repository needs.
package shellrules
