package modelregistry

import (
	"regexp"
	"slices"
	"strings"
)

// imagePattern is what an image may be written with. Whether it exists only the kubelet knows.
var imagePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

// reference is an image reference, taken apart.
type reference struct{ repository, tag, digest string }

// parseImage takes an image reference apart. A colon before the last slash belongs to the port of a registry.
func parseImage(image string) reference {
	r := reference{repository: image}
	r.repository, r.digest, _ = strings.Cut(r.repository, "@")
	if colon := strings.LastIndexByte(r.repository, ':'); colon > strings.LastIndexByte(r.repository, '/') {
		r.repository, r.tag = r.repository[:colon], r.repository[colon+1:]
	}
	if r.tag == "" && r.digest == "" {
		r.tag = "latest"
	}
	return r
}

// isOneOf tells whether an image is one of others, however it is written.
func isOneOf(image string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return parseImage(other) == parseImage(image) })
}
