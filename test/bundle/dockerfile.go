package bundle

import (
	"fmt"
	"strings"
)

// dockerfile is a parsed Dockerfile. Here-documents are not supported, and of escapes only a backslash at the end of a line.
type dockerfile struct {
	// arguments before the first stage, with their defaults.
	arguments map[string]string
	stages    []stage
}

// stage is a FROM with its instructions.
type stage struct {
	image, name, platform string
	instructions          []instruction
}

// instruction is an instruction after FROM, with its arguments separated by blanks.
type instruction struct {
	name      string
	arguments []string
}

// readDockerfile parses a Dockerfile. It returns an error for an unsupported line.
func readDockerfile(text string) (*dockerfile, error) {
	d := &dockerfile{arguments: map[string]string{}}
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(strings.Join(kept, "\n"), "\\\n", " ")) {
		words := strings.Fields(line)
		if err := d.add(strings.ToUpper(words[0]), words[1:]); err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
		}
	}
	return d, nil
}

func (d *dockerfile) add(name string, arguments []string) error {
	if name == "FROM" {
		return d.parseFrom(arguments)
	}
	if len(arguments) == 0 {
		return fmt.Errorf("%s says nothing", name)
	}
	if len(d.stages) > 0 {
		last := &d.stages[len(d.stages)-1]
		last.instructions = append(last.instructions, instruction{name, arguments})
		return nil
	}
	if name != "ARG" {
		return fmt.Errorf("%s stands before the first FROM", name)
	}
	for _, argument := range arguments {
		key, value, _ := strings.Cut(argument, "=")
		d.arguments[key] = value
	}
	return nil
}

func (d *dockerfile) parseFrom(words []string) error {
	var s stage
	for len(words) > 0 && strings.HasPrefix(words[0], "--platform=") {
		s.platform, words = strings.TrimPrefix(words[0], "--platform="), words[1:]
	}
	switch {
	case len(words) == 1:
	case len(words) == 3 && strings.EqualFold(words[1], "as"):
		s.name = words[2]
	default:
		return fmt.Errorf("it is not FROM image or FROM image AS name")
	}
	s.image = words[0]
	d.stages = append(d.stages, s)
	return nil
}

// labels returns the labels of the last stage.
func (d *dockerfile) labels() map[string]string {
	out := map[string]string{}
	for _, i := range d.stages[len(d.stages)-1].instructions {
		if i.name != "LABEL" {
			continue
		}
		for _, argument := range i.arguments {
			key, value, _ := strings.Cut(argument, "=")
			out[key] = strings.Trim(value, `"`)
		}
	}
	return out
}
