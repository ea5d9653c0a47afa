package settings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A scalar counts as it is written: what YAML would make of 1.0 or of an unquoted number is not asked where text is wanted, and
// quotes around a number or a switch do not matter.

// word returns what is written, without blanks around it; false for a list or an object.
func word(node *yaml.Node) (string, bool) {
	node = target(node)
	return strings.TrimSpace(node.Value), node.Kind == yaml.ScalarNode
}

// text reads a string that check accepts; nil accepts all. want names what is accepted.
func (s *section) text(name string, dst *string, want string, check func(string) bool) {
	node := s.value(name)
	if node == nil {
		return
	}
	given, ok := word(node)
	if !ok || check != nil && !check(given) {
		s.refuse(name, node, want)
		return
	}
	*dst = given
}

func (s *section) boolean(name string, dst *bool) {
	node := s.value(name)
	if node == nil {
		return
	}
	given, ok := word(node)
	switch strings.ToLower(given) {
	case "true", "yes", "on", "1":
		*dst = true
	case "false", "no", "off", "0":
		*dst = false
	default:
		ok = false
	}
	if !ok {
		s.refuse(name, node, "true or false")
	}
}

// integer reads a number within bounds.
func integer[T int32 | int64](s *section, name string, dst *T, low, high T) {
	node := s.value(name)
	if node == nil {
		return
	}
	given, ok := word(node)
	n, err := strconv.ParseInt(given, 10, 64)
	if !ok || err != nil || n < int64(low) || n > int64(high) {
		s.refuse(name, node, fmt.Sprintf("a whole number from %d to %d", low, high))
		return
	}
	*dst = T(n)
}

func (s *section) port(name string, dst *int32) { integer(s, name, dst, 1, math.MaxUint16) }

// list reads the items of a list; an empty string is an empty one. ok is false where nothing is said or it is no list.
func (s *section) list(name, want string) (items []*yaml.Node, ok bool) {
	node := s.value(name)
	if node == nil {
		return nil, false
	}
	if given, scalar := word(node); scalar && given == "" {
		return nil, true
	}
	if target(node).Kind != yaml.SequenceNode {
		s.refuse(name, node, want)
		return nil, false
	}
	return target(node).Content, true
}

// strings reads a list of strings, which takes the place of the one that is there.
func (s *section) strings(name string, dst *[]string, want string, check func(string) bool) {
	items, ok := s.list(name, want)
	if !ok {
		return
	}
	list := make([]string, 0, len(items))
	for i, item := range items {
		given, scalar := word(item)
		if !scalar || isNull(item) || !check(given) {
			s.refuse(fmt.Sprintf("%s[%d]", name, i), item, want)
			return
		}
		list = append(list, given)
	}
	*dst = list
}

// objects reads a list of objects.
func (s *section) objects(name, want string, read func(*section)) bool {
	items, ok := s.list(name, want)
	for i, item := range items {
		if s.full() {
			return false
		}
		at := fmt.Sprintf("%s[%d]", name, i)
		fields, ok := s.open(at, item, want)
		if !ok {
			return false
		}
		one := &section{path: s.path + at + ".", fields: fields, findings: s.findings}
		read(one)
		one.finish()
	}
	return ok
}

// pairs merges a map over the one that is there, key by key and as the keys are written; null takes a key away.
func (s *section) pairs(name string, dst *map[string]string, badKey, badValue func(string) []string) {
	node := s.value(name)
	if node == nil {
		return
	}
	fields, ok := s.open(name, node, "an object of strings")
	if !ok {
		return
	}
	if *dst == nil && len(fields) > 0 {
		*dst = map[string]string{}
	}
	for key, value := range fields {
		given := target(&value).Value
		switch {
		case isNull(&value):
			delete(*dst, key)
		case target(&value).Kind != yaml.ScalarNode:
			s.refuse(name+"."+key, &value, "a string")
		case len(badKey(key)) > 0:
			s.refuse(name, &yaml.Node{Kind: yaml.ScalarNode, Value: key, Line: value.Line}, "an object whose keys are names: "+badKey(key)[0])
		case len(badValue(given)) > 0:
			s.refuse(name+"."+key, &value, "a value that Kubernetes takes: "+badValue(given)[0])
		default:
			(*dst)[key] = given
		}
	}
}

// anyValue is for annotations, whose values are free.
func anyValue(string) []string { return nil }

// image reads an image, and a command where there may be one.
func (s *section) image(name string, dst *Image, command *[]string) {
	s.child(name, func(c *section) {
		given := map[string]*string{}
		for _, part := range []string{"name", "tag", "digest"} {
			if node := c.value(part); node != nil {
				text, ok := word(node)
				if !ok || strings.ContainsAny(text, " \t\n\"'") || strings.Contains(text, "://") {
					c.refuse(part, node, "part of an image reference such as quay.io/example/image:v1")
					continue
				}
				given[part] = &text
			}
		}
		image, err := dst.over(given["name"], given["tag"], given["digest"])
		if err != nil {
			c.fail("%sname %q %w", c.path, *given["name"], err)
		}
		*dst = image
		if command != nil {
			c.strings("command", command, "a list of strings", func(string) bool { return true })
		}
	})
}

// resources reads requests and limits of CPU and memory, each on its own.
func (s *section) resources(name string, dst *corev1.ResourceRequirements) {
	s.child(name, func(c *section) {
		for _, part := range []struct {
			name string
			list corev1.ResourceList
		}{{"requests", dst.Requests}, {"limits", dst.Limits}} {
			c.child(part.name, func(p *section) {
				for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
					p.quantity(resource, part.list, strings.TrimSuffix(c.path, "."))
				}
			})
		}
	})
}

func (s *section) quantity(name corev1.ResourceName, list corev1.ResourceList, of string) {
	node := s.value(string(name))
	if node == nil {
		return
	}
	given, ok := word(node)
	quantity, err := resource.ParseQuantity(given)
	if !ok || err != nil || quantity.Sign() < 0 {
		s.fail("%w", invalid(of, fmt.Errorf("%s%s %s (line %d): must be a quantity such as 100m or 64Mi", s.path, name, shown(node), node.Line)))
		return
	}
	list[name] = quantity
}

// invalid has the words of the original about resources.
func invalid(of string, err error) error {
	return fmt.Errorf("%s '%s': %w", "Invalid config for", of, err)
}

func oneOf(words ...string) func(string) bool {
	return func(given string) bool { return slices.Contains(words, given) }
}

func isLabel(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

func emptyOr(check func(string) bool) func(string) bool {
	return func(text string) bool { return text == "" || check(text) }
}
