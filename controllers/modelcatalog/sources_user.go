package modelcatalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// formerDefault is the entry that releases before 3.0 put into the sources of users.
const formerDefault = "default_catalog"

// listsOfModels are the sections in which that entry can stand.
var listsOfModels = []string{"catalogs", "model_catalogs"}

// withoutFormerDefault returns sources without the entry of older releases: that entry goes, and everything else stays, also
// keys that are not known here. Empty means that there is nothing to remove. An error says why the text is not understood; it
// is left alone then.
func withoutFormerDefault(text string) (string, error) {
	document, err := readSources(text)
	if err != nil || document == nil {
		return "", err
	}
	removed := false
	for _, section := range listsOfModels {
		list := valueOf(document.Content[0], section)
		if list == nil || list.Tag == "!!null" {
			continue
		}
		if list.Kind != yaml.SequenceNode {
			return "", fmt.Errorf("%s is no list", section)
		}
		before := len(list.Content)
		list.Content = slices.DeleteFunc(list.Content, isFormerDefault)
		removed = removed || len(list.Content) != before
	}
	if !removed {
		return "", nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("encoding the sources without %s: %w", formerDefault, err)
	}
	if _, err := readSources(out.String()); err != nil { // something refers to what was removed
		return "", fmt.Errorf("%s cannot be removed: %w", formerDefault, err)
	}
	return out.String(), nil
}

// readSources parses one document that is a map; nil for an empty text.
func readSources(text string) (document *yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	document = &yaml.Node{}
	switch err := decoder.Decode(document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("it is no valid YAML: %w", err)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("it is no map of sections such as catalogs")
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one document")
	}
	return document, nil
}

// valueOf finds the value of a key in a map; nil when it is absent.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func isFormerDefault(entry *yaml.Node) bool {
	if entry.Kind != yaml.MappingNode {
		return false
	}
	id := valueOf(entry, "id")
	return id != nil && id.Kind == yaml.ScalarNode && id.Value == formerDefault
}
