// Package pack transfers an agent's work from one VM to another: [Pack] writes it as one stream on the old VM, and
// [Unpack] restores it on a new one whose checkout has just been prepared.
//
// The stream contains commits that the base lacks (of HEAD, local branches, tags and stashes), HEAD, the index, changed,
// deleted and untracked files byte for byte, the Git LFS files to which any of these refer, the state of an unfinished git
// operation, the agent's sessions, and the caches that `keep:` lists. It does not contain other ignored files, empty
// folders, nested repositories, submodules' content, special files, git's configuration, hooks, reflogs and
// remote-tracking branches, credentials, and the rest of the home directory. Manifest.Left lists the omissions.
//
// Neither side trusts the other: packing runs no program that the checkout names, follows no link and reads regular
// files only; unpacking verifies the whole stream before it changes anything.
//
// Start here: [Manifest], [Pack] and [Unpack].
package pack
