package bundle

import (
	"fmt"
	"strings"
)

// dockerfile is a parsed Dockerfile. The parser supports neither here-documents nor escapes other than a backslash at the end of a line.
type dockerfile struct {
	// arguments are the build arguments before the first stage, with their defaults.
	arguments map[string]string
	stages    []stage
}

// stage is a FROM instruction with the instructions that follow it.
type stage struct {
	image, name, platform string
	instructions          []instruction
}

// instruction is an instruction with its arguments, which blanks separate.
type instruction struct {
	name      string
	arguments []string
}

// readDockerfile parses a Dockerfile. It returns an error for an unsupported line.
func readDockerfile(text string) (*dockerfile, error) {
	d := &dockerfile{arguments: map[string]string{}}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", " ")) {
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
		return fmt.Errorf("%s has no arguments", name)
	}
	if len(d.stages) > 0 {
		last := &d.stages[len(d.stages)-1]
		last.instructions = append(last.instructions, instruction{name, arguments})
		return nil
	}
	if name != "ARG" {
		return fmt.Errorf("%s is before the first FROM", name)
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
		return fmt.Errorf("must be FROM image or FROM image AS name")
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
