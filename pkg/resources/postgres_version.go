package resources

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	repositoryVersion = regexp.MustCompile(`(?:postgresql|postgres)-?(\d{1,2})(?:-|$)`)
	tagVersion        = regexp.MustCompile(`^v?(\d{1,2})(?:[-._]|$)`)
)

// PostgresMajorVersion returns the major version of PostgreSQL in the repository of an image, such as postgresql-16-c10s, or else in its
// tag, such as postgresql:16.4. It returns 0 if neither contains a version.
func PostgresMajorVersion(image string) int32 {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	name, tag, _ := strings.Cut(name, ":")
	match := repositoryVersion.FindStringSubmatch(name)
	if match == nil && strings.Contains(name, "postgres") {
		match = tagVersion.FindStringSubmatch(tag)
	}
	if match == nil {
		return 0
	}
	version, err := strconv.ParseInt(match[1], 10, 32)
	if err != nil {
		return 0
	}
	return int32(version)
}
