package modelmesh

import "strings"

// afterColon is what follows the first colon.
func afterColon(image string) string {
	_, after, _ := strings.Cut(image, ":")
	return after
}

// tagOf is the tag of an image; empty when it has none. The registry may have a port, and a digest may follow.
func tagOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	last := name[strings.LastIndex(name, "/")+1:]
	_, tag, _ := strings.Cut(last, ":")
	return tag
}
