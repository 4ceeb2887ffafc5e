// Package pack transfers an agent's work from one VM to another: [Pack] writes it as one stream on the old VM, and
// [Unpack] restores it on a new one whose checkout has just been prepared.
//
// The stream contains the commits that the base does not contain (of HEAD, local branches, tags and stashes), HEAD
// itself, the index, changed, deleted and untracked files byte for byte with executable bits and links, the large files
// of Git LFS to which any of these refer, the state of an unfinished git operation, the agent's sessions, and the
// caches that `keep:` lists.
//
// It does not contain ignored files outside of `keep:`, empty folders, repositories cloned into the checkout, the
// content of submodules, special files, git's configuration, hooks, reflogs and remote-tracking branches, credentials,
// and the rest of the home directory, such as the folders of runs, which were collected at their end. Manifest.Left
// lists the omissions.
//
// Neither side trusts the other: packing runs no program that the checkout names, follows no link and reads regular
// files only; unpacking verifies the whole stream before it changes anything.
//
// Start here: [Manifest], [Pack] and [Unpack].
package pack
