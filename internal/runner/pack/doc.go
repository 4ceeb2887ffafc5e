// Package pack carries an agent's work from one VM to another: Pack writes it as one stream while
// the old VM still is, Unpack puts it back on a new one whose checkout has just been prepared.
//
// Carried are: commits that the base does not have (of HEAD, local branches, tags and stashes), what
// HEAD stands on, the index, changed, deleted and untracked files of the checkout byte for byte with
// their executable bits and links, what git is in the middle of (a merge, a rebase), the agent's
// sessions, and the caches that the repository names in `keep:`.
//
// Not carried are: ignored files outside `keep:`, empty folders, other repositories cloned into the
// checkout and submodules' contents, sockets, pipes and devices, git's configuration, hooks, reflogs
// and remote-tracking branches, credentials, and everything else in the home directory, such as the
// runs' folders: a run that has ended was collected already. Manifest.Left says what was left out.
//
// Neither side trusts the other. Packing runs nothing that the workspace names, follows no link and
// reads nothing but regular files. Unpacking checks the whole stream before it touches the checkout.
// Start reading at Manifest, then Pack and Unpack; Verify is for whoever keeps a stream.
package pack
