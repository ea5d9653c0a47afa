package settings

import (
	"errors"
	"strings"
)

// Image is a container image in parts.
type Image struct {
	// Name has no tag unless Digest is set too.
	Name, Tag, Digest string
}

// Reference is the image as a pod names it: by its digest if it has one, else by its tag. It is "" for no image.
func (i Image) Reference() string {
	switch {
	case i.Name == "":
		return ""
	case i.Digest != "":
		return i.Name + "@" + i.Digest
	case i.Tag != "":
		return i.Name + ":" + i.Tag
	default:
		return i.Name
	}
}

// ParseImage takes a reference apart.
func ParseImage(reference string) Image {
	reference = strings.TrimSpace(reference)
	if name, digest, ok := strings.Cut(reference, "@"); ok {
		return Image{Name: name, Digest: digest} // a tag before the digest stays in the name: it is for the reader
	}
	name, tag := splitTag(reference)
	return Image{Name: name, Tag: tag}
}

// splitTag parts a tag from a name, whose registry may have a port.
func splitTag(name string) (string, string) {
	colon := strings.LastIndex(name, ":")
	if colon <= strings.LastIndex(name, "/") {
		return name, ""
	}
	return name[:colon], name[colon+1:]
}

// said tells whether a document gives a part, and not as nothing.
func isSet(part *string) bool { return part != nil && *part != "" }

// over lays what a document says of an image over another. nil is what it does not say. A tag or a name with a tag drops the
// digest below: it would win over the tag.
func (i Image) merge(name, tag, digest *string) (Image, error) {
	if name != nil {
		given := ParseImage(*name)
		switch {
		case given.Name == "":
			return i, errors.New("must name an image")
		case given.Tag == "" && given.Digest == "":
			i.Name = given.Name
		case isSet(tag), isSet(digest) && given.Digest != "":
			return i, errors.New("must have no tag and no digest where these stand beside it")
		case isSet(digest): // the tag stays in the name: it is for the reader
			return Image{Name: given.Name + ":" + given.Tag, Digest: *digest}, nil
		default:
			return given, nil
		}
	}
	if tag != nil {
		i.Name, _ = splitTag(i.Name)
		i.Tag, i.Digest = *tag, ""
	}
	if digest != nil {
		i.Digest = *digest
	}
	return i, nil
}
