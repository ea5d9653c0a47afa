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

// PostgresMajor returns the major version of PostgreSQL that the name of an image tells: that in the name of its repository, such as
// postgresql-16-c10s, or else that in its tag, such as postgresql:16.4. It returns 0 for one that tells none.
func PostgresMajorVersion(image string) int32 {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	name, tag, _ := strings.Cut(name, ":")
	found := repositoryVersion.FindStringSubmatch(name)
	if found == nil && strings.Contains(name, "postgres") {
		found = tagVersion.FindStringSubmatch(tag)
	}
	if found == nil {
		return 0
	}
	version, err := strconv.ParseInt(found[1], 10, 32)
	if err != nil {
		return 0
	}
	return int32(version)
}
