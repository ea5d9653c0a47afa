package settings

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/quantity"
)

// setter parses a value of a document: a string, a list or an object. It records an error for an invalid value.
type setter func(p *parser, path string, raw any)

// scalar parses a string after trimming spaces. expected describes the valid values in errors.
func scalar[T any](target *T, expected string, parse func(text string) (value T, valid bool)) setter {
	return func(p *parser, path string, raw any) {
		text, isText := raw.(string)
		if value, valid := parse(strings.TrimSpace(text)); isText && valid {
			*target = value
		} else {
			p.reject(path, raw, expected)
		}
	}
}

// text parses a string that check accepts.
func text(target *string, expected string, check func(string) bool) setter {
	return scalar(target, expected, func(text string) (string, bool) { return text, check(text) })
}

// clientAuth accepts unknown values with a note, because the legacy controller accepts them.
func clientAuth(target *string) setter {
	return func(p *parser, path string, raw any) {
		text(target, "require, optional or empty", hasNoSpace)(p, path, raw)
		if !oneOf("", "require", "optional")(*target) {
			p.note("%s %q is passed on unchanged: use require or optional, the only values that ModelMesh supports", path, *target)
		}
	}
}

func boolean(target *bool) setter {
	return scalar(target, "true or false", func(text string) (bool, bool) {
		isTrue := oneOf("true", "yes", "on", "1")(strings.ToLower(text))
		return isTrue, isTrue || oneOf("false", "no", "off", "0")(strings.ToLower(text))
	})
}

// integer parses a number from low to high.
func integer[T int32 | int64](target *T, low, high int64) setter {
	return scalar(target, fmt.Sprintf("a whole number from %d to %d", low, high), func(text string) (T, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return T(n), err == nil && n >= low && n <= high
	})
}

func port(target *int32) setter { return integer(target, 1, math.MaxUint16) }

func seconds(target *time.Duration) setter {
	return func(p *parser, path string, raw any) {
		var n int64
		integer(&n, 0, math.MaxInt32)(p, path, raw)
		*target = time.Duration(n) * time.Second
	}
}

// listOf parses a list with parseItem for each item. The list replaces the previous one. An empty string is an empty list.
func listOf[T any](target *[]T, expected string, parseItem func(p *parser, path string, item any, into *T)) setter {
	return func(p *parser, path string, raw any) {
		if value, ok := raw.(string); ok && strings.TrimSpace(value) == "" {
			raw = []any{}
		}
		list, ok := raw.([]any)
		if !ok {
			p.reject(path, raw, expected)
			return
		}
		*target = make([]T, len(list))
		for i, item := range list {
			parseItem(p, fmt.Sprintf("%s[%d]", path, i), item, &(*target)[i])
		}
	}
}

// stringList parses a list of strings.
func stringList(target *[]string, expected string, check func(string) bool) setter {
	return listOf(target, expected, func(p *parser, path string, item any, into *string) { text(into, expected, check)(p, path, item) })
}

// objectList parses a list of objects.
func objectList[T any](target *[]T, expected string, keys func(*T) []keySpec) setter {
	return listOf(target, expected, func(p *parser, path string, item any, into *T) {
		if fields, ok := item.(map[string]any); ok {
			p.object(path+".", fields, keys(into))
		} else {
			p.reject(path, item, expected)
		}
	})
}

// stringMap merges an object of strings into a map. A null value deletes its key.
func stringMap(target *map[string]string, badKey, badValue func(string) []string) setter {
	return func(p *parser, path string, raw any) {
		fields, ok := raw.(map[string]any)
		if !ok {
			p.reject(path, raw, "an object of strings")
			return
		}
		if *target == nil && len(fields) > 0 {
			*target = map[string]string{}
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			field := fields[key]
			value, ok := field.(string)
			switch {
			case field == nil:
				delete(*target, key)
			case !ok:
				p.reject(path+"."+key, field, "a string")
			case len(badKey(key)) > 0:
				p.reject(path, key, "an object whose keys are names: "+badKey(key)[0])
			case len(badValue(value)) > 0:
				p.reject(path+"."+key, value, "a value that Kubernetes accepts: "+badValue(value)[0])
			default:
				(*target)[key] = value
			}
		}
	}
}

// podLabels parses pod labels. Reserved labels are ignored, because Services and NetworkPolicies of the platform select pods by them.
func podLabels(target *map[string]string) setter {
	return func(p *parser, path string, raw any) {
		stringMap(target, validation.IsQualifiedName, validation.IsValidLabelValue)(p, path, raw)
		for _, key := range slices.Sorted(maps.Keys(*target)) {
			if admission.IsReservedLabel(key) {
				delete(*target, key)
				p.note("%s.%s has no effect, because the platform selects pods by it: remove it", path, key)
			}
		}
	}
}

func resourceQuantity(list corev1.ResourceList, name corev1.ResourceName) setter {
	return func(p *parser, path string, raw any) {
		value, _ := raw.(string)
		q, err := quantity.Parse(strings.TrimSpace(value))
		if err != nil || q.Sign() < 0 {
			key, _, _ := strings.Cut(strings.Replace(path, ".requests.", ".limits.", 1), ".limits.")
			p.fail("%w", invalidResources(key, fmt.Errorf("%s %s: must be a quantity such as 100m or 64Mi", path, quoteValue(raw))))
			return
		}
		list[name] = q
	}
}

// invalidResources returns an error about resources with the message of the legacy controller.
func invalidResources(field string, err error) error {
	return fmt.Errorf("%s '%s': %w", "Invalid config for", field, err)
}

func oneOf(words ...string) func(string) bool {
	return func(raw string) bool { return slices.Contains(words, raw) }
}

func anyString(string) bool { return true }

// passes converts a validation function of Kubernetes to a predicate.
func passes(check func(string) []string) func(string) bool {
	return func(text string) bool { return len(check(text)) == 0 }
}

func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

func hasNoSpace(text string) bool { return !strings.ContainsFunc(text, unicode.IsSpace) }

func orEmpty(check func(string) bool) func(string) bool {
	return func(text string) bool { return text == "" || check(text) }
}
