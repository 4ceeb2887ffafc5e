// Package image tests the container image that `make image` makes, and the compose file of docs/deployment.md.
//
// The image is built twice, unpacked, and started by runc as the compose file says: with its user, its mounts and without capabilities,
// against simulators of GitHub, Hetzner and a model. Start reading at TestHeavyImage, then at TestCompose.
package image
