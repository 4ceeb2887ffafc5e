// Package pack carries an agent's work from one VM to another: Pack writes it as one stream while
// the old VM still is, Unpack puts it back on a new one whose checkout has just been prepared.
//
// Carried are commits that the base does not have (of HEAD, local branches, tags and stashes), HEAD
// itself, the index, changed, deleted and untracked files byte for byte with executable bits and
// links, the large files of Git LFS that any of these point to, what git is in the middle of, the
// agent's sessions, and the caches that `keep:` names.
//
// Not carried are ignored files outside `keep:`, empty folders, repositories cloned into the
// checkout, submodules' contents, pipes and the like, git's configuration, hooks, reflogs and
// remote-tracking branches, credentials, and all else in the home directory, such as runs' folders:
// a run that has ended was collected already. Manifest.Left says what was left out.
//
// Neither side trusts the other: packing runs nothing that the checkout names, follows no link and reads regular
// files only; unpacking checks the whole stream before it touches anything. Start at Manifest, Pack and Unpack.
package pack
