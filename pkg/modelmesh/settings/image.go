package settings

import (
	"errors"
	"strings"
)

// Image is a parsed image reference.
type Image struct {
	// Name may contain a tag if the reference has a digest too.
	Name, Tag, Digest string
}

// Reference returns the image with its digest, else with its tag, or "".
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

// ParseImage parses an image reference.
func ParseImage(reference string) Image {
	reference = strings.TrimSpace(reference)
	if name, digest, ok := strings.Cut(reference, "@"); ok {
		return Image{Name: name, Digest: digest} // a tag before the digest is informational and stays in the name
	}
	name, tag := splitTag(reference)
	return Image{Name: name, Tag: tag}
}

// splitTag splits name and tag. The registry can have a port.
func splitTag(name string) (string, string) {
	colon := strings.LastIndex(name, ":")
	if colon <= strings.LastIndex(name, "/") {
		return name, ""
	}
	return name[:colon], name[colon+1:]
}

// isSet reports whether a part is set and not empty.
func isSet(part *string) bool { return part != nil && *part != "" }

// merge replaces the parts of an image whose argument is not nil. A tag, or a name with a tag, removes the previous
// digest, which would take precedence.
func (i Image) merge(name, tag, digest *string) (Image, error) {
	if name != nil {
		parsed := ParseImage(*name)
		switch {
		case parsed.Name == "":
			return i, errors.New("must name an image")
		case parsed.Tag == "" && parsed.Digest == "":
			i.Name = parsed.Name
		case isSet(tag), isSet(digest) && parsed.Digest != "":
			return i, errors.New("must have no tag and no digest if separate keys set these")
		case isSet(digest): // the tag is informational and stays in the name
			return Image{Name: parsed.Name + ":" + parsed.Tag, Digest: *digest}, nil
		default:
			return parsed, nil
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
