package modelcatalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

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
