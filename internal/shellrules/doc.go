// Package shellrules judges command lines for a shell by how the commands in them begin: which may be called, and
// which may not. It reads a line as a shell does, so that what stands behind && or |, in $(…), in a loop, behind
// env, timeout or xargs, and in the text of sh -c is judged like what stands alone.
//
// It is no boundary. A program that may be called can call any other one, and a line can be written so that
// nobody sees what it does before it runs. It keeps an agent from mistakes, and tells it at once what it may do.
//
// Start reading at Rules.Judge. Calls takes lines apart; Always and Found say what a repository needs.
package shellrules
