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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// setter takes a value of a document: a string as it is written, a list or an object. What it cannot use it refuses.
type setter func(r *parser, path string, given any)

// text takes a string that check accepts; want names what that is.
func text(to *string, want string, check func(string) bool) setter {
	return func(r *parser, path string, given any) {
		value, ok := given.(string)
		if value = strings.TrimSpace(value); !ok || !check(value) {
			r.refuse(path, given, want)
			return
		}
		*to = value
	}
}

// clientAuth takes any word, because the original hands it on.
func clientAuth(to *string) setter {
	return func(r *parser, path string, given any) {
		text(to, "require, optional or empty", hasNoSpace)(r, path, given)
		if !oneOf("", "require", "optional")(*to) {
			r.note("%s %q is handed on as it is: the programs know require and optional", path, *to)
		}
	}
}

func boolean(to *bool) setter {
	return func(r *parser, path string, given any) {
		value, _ := given.(string)
		switch strings.ToLower(strings.TrimSpace(value)) {
		case "true", "yes", "on", "1":
			*to = true
		case "false", "no", "off", "0":
			*to = false
		default:
			r.refuse(path, given, "true or false")
		}
	}
}

// integer takes a number within bounds.
func integer[T int32 | int64](to *T, low, high int64) setter {
	return func(r *parser, path string, given any) {
		value, _ := given.(string)
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < low || n > high {
			r.refuse(path, given, fmt.Sprintf("a whole number from %d to %d", low, high))
			return
		}
		*to = T(n)
	}
}

func port(to *int32) setter { return integer(to, 1, math.MaxUint16) }

func seconds(to *time.Duration) setter {
	return func(r *parser, path string, given any) {
		var n int64
		integer(&n, 0, math.MaxInt32)(r, path, given)
		*to = time.Duration(n) * time.Second
	}
}

// items takes a list, which replaces the one below; take takes each of its items. An empty string is an empty list.
func listOf[T any](to *[]T, want string, take func(r *parser, path string, item any, into *T)) setter {
	return func(r *parser, path string, given any) {
		if value, ok := given.(string); ok && strings.TrimSpace(value) == "" {
			given = []any{}
		}
		all, ok := given.([]any)
		if !ok {
			r.refuse(path, given, want)
			return
		}
		*to = make([]T, len(all))
		for i, item := range all {
			take(r, fmt.Sprintf("%s[%d]", path, i), item, &(*to)[i])
		}
	}
}

// list takes a list of strings.
func stringList(to *[]string, want string, check func(string) bool) setter {
	return listOf(to, want, func(r *parser, path string, item any, into *string) { text(into, want, check)(r, path, item) })
}

// objects takes a list of objects.
func objectList[T any](to *[]T, want string, keys func(*T) []keySpec) setter {
	return listOf(to, want, func(r *parser, path string, item any, into *T) {
		if fields, ok := item.(map[string]any); ok {
			r.object(path+".", fields, keys(into))
		} else {
			r.refuse(path, item, want)
		}
	})
}

// pairs merges an object of strings into the one below, key by key and as the keys are written; null takes a key away.
func stringMap(to *map[string]string, badKey, badValue func(string) []string) setter {
	return func(r *parser, path string, given any) {
		fields, ok := given.(map[string]any)
		if !ok {
			r.refuse(path, given, "an object of strings")
			return
		}
		if *to == nil && len(fields) > 0 {
			*to = map[string]string{}
		}
		for key, field := range fields {
			value, ok := field.(string)
			switch {
			case field == nil:
				delete(*to, key)
			case !ok:
				r.refuse(path+"."+key, field, "a string")
			case len(badKey(key)) > 0:
				r.refuse(path, key, "an object whose keys are names: "+badKey(key)[0])
			case len(badValue(value)) > 0:
				r.refuse(path+"."+key, value, "a value that Kubernetes takes: "+badValue(value)[0])
			default:
				(*to)[key] = value
			}
		}
	}
}

// podLabels takes labels of pods. Reserved ones have no effect: Services and policies would take the pods for others.
func podLabels(to *map[string]string) setter {
	return func(r *parser, path string, given any) {
		stringMap(to, validation.IsQualifiedName, validation.IsValidLabelValue)(r, path, given)
		for _, key := range slices.Sorted(maps.Keys(*to)) {
			if admission.ReservedLabel(key) {
				delete(*to, key)
				r.note("%s.%s has no effect: the platform selects pods by it", path, key)
			}
		}
	}
}

func quantity(list corev1.ResourceList, name corev1.ResourceName) setter {
	return func(r *parser, path string, given any) {
		value, _ := given.(string)
		q, err := resource.ParseQuantity(strings.TrimSpace(value))
		if err != nil || q.Sign() < 0 {
			of, _, _ := strings.Cut(strings.Replace(path, ".requests.", ".limits.", 1), ".limits.")
			r.fail("%w", invalidResources(of, fmt.Errorf("%s %s: must be a quantity such as 100m or 64Mi", path, quoteValue(given))))
			return
		}
		list[name] = q
	}
}

// invalid has the words of the original about resources.
func invalidResources(of string, err error) error {
	return fmt.Errorf("%s '%s': %w", "Invalid config for", of, err)
}

func oneOf(words ...string) func(string) bool {
	return func(given string) bool { return slices.Contains(words, given) }
}

func anyString(string) bool { return true }

// valid turns a check of Kubernetes, which returns what is wrong, into one that reports whether nothing is.
func passes(check func(string) []string) func(string) bool {
	return func(text string) bool { return len(check(text)) == 0 }
}

func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

func hasNoSpace(text string) bool { return !strings.ContainsFunc(text, unicode.IsSpace) }

func orEmpty(check func(string) bool) func(string) bool {
	return func(text string) bool { return text == "" || check(text) }
}
