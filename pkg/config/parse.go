package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

func discard(string) error { return nil }

func text(dst *string) func(string) error {
	return func(raw string) error {
		*dst = strings.TrimSpace(raw)
		return nil
	}
}

// validated returns a parser that stores a string, and returns an error if it is invalid.
func validated(dst *string, isValid func(string) bool, want string) func(string) error {
	return func(raw string) error {
		if *dst = strings.TrimSpace(raw); !isValid(*dst) {
			return errors.New(want)
		}
		return nil
	}
}

// parsed returns a parser that stores the result of parse.
func parsed[T any](dst *T, parse func(string) (T, error), want string) func(string) error {
	return func(raw string) (err error) {
		if *dst, err = parse(strings.TrimSpace(raw)); err != nil {
			return errors.New(want)
		}
		return nil
	}
}

func required(dst *string) func(string) error {
	return validated(dst, func(text string) bool { return text != "" }, "must not be empty")
}

func boolean(dst *bool) func(string) error {
	return parsed(dst, strconv.ParseBool, "must be true or false")
}

func number(dst *int32) func(string) error {
	return parsed(dst, func(text string) (int32, error) {
		parsed, err := strconv.ParseInt(text, 10, 32)
		return int32(parsed), err
	}, "must be "+string(typeInt))
}

func duration(dst *time.Duration) func(string) error {
	return parsed(dst, func(text string) (time.Duration, error) {
		period, err := time.ParseDuration(text)
		if err == nil && period <= 0 {
			err = strconv.ErrRange
		}
		return period, err
	}, `must be a duration above zero, for example "30s"`)
}

func port(dst *int) func(string) error {
	return parsed(dst, func(text string) (int, error) {
		number, err := strconv.ParseUint(text, 10, 16)
		if number == 0 {
			err = strconv.ErrRange
		}
		return int(number), err
	}, "must be a port, 1 to 65535")
}

// address parses a bind address of controller-runtime: host:port, or "0" for no listener.
func address(dst *string) func(string) error {
	return validated(dst, func(text string) bool {
		_, port, err := net.SplitHostPort(text)
		_, portErr := strconv.ParseUint(port, 10, 16)
		return text == "0" || err == nil && portErr == nil
	}, `must be host:port or :port, or "0" for no listener`)
}

// oneOf parses one of the known values.
func oneOf(store func(string), known ...string) func(string) error {
	last := len(known) - 1
	return func(raw string) error {
		raw = strings.TrimSpace(raw)
		if store(raw); !slices.Contains(known, raw) {
			return errors.New("must be " + strings.Join(known[:last], ", ") + " or " + known[last])
		}
		return nil
	}
}

func namespace(dst *string) func(string) error {
	return func(raw string) error {
		*dst = strings.TrimSpace(raw)
		return checkNamespace(*dst)
	}
}

func checkNamespace(name string) error {
	if name == "" {
		return errors.New("must not be empty: name a namespace")
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return errors.New("must be a namespace: at most 63 of a-z, 0-9 and -, letters or digits at both ends")
	}
	return nil
}

func subdomain(dst *string) func(string) error {
	return validated(dst, func(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 },
		"must be an object name: at most 253 of a-z, 0-9, - and ., letters or digits at both ends")
}

// prefix parses a prefix of object names.
func prefix(dst *string) func(string) error {
	return validated(dst, func(text string) bool { return len(validation.IsDNS1123Subdomain(text+"x")) == 0 },
		"must start an object name: a-z, 0-9, - and ., a letter or digit first")
}

// image parses an image reference. It rejects only strings that cannot be a reference.
func image(dst *string) func(string) error {
	return validated(dst, func(text string) bool {
		return !strings.ContainsAny(text, " \t\n\"'") && !strings.Contains(text, "://")
	},
		"must be an image reference such as quay.io/opendatahub/mlflow:odh-stable")
}

// baseURL parses and normalizes an external URL. ExampleURL and PlaceholderURL count as unset, although the legacy operators published them.
func baseURL(dst *string) func(string) error {
	return func(raw string) error {
		base := strings.TrimRight(strings.TrimSpace(raw), "/")
		if *dst = ""; base == "" {
			return nil
		}
		if !strings.Contains(base, "://") {
			base = "https://" + base // existing installations configure hosts without a scheme
		}
		u, err := url.Parse(base)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
			return errors.New("must be an http or https URL with a host, for example https://gateway.apps.example.org")
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("must be a base URL without user, query and fragment")
		}
		if base != ExampleURL && base != PlaceholderURL { // anyone could register the domains of both
			*dst = base
		}
		return nil
	}
}

func isTrue(raw string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(raw))
	return err == nil && on
}

// value is the configured value of a setting, with its source.
type value struct {
	source string
	raw    string
	// err is the error for a value of another type.
	err error
}

// set parses and stores the value.
func (v value) set(row setting) error {
	if v.err != nil {
		return v.err
	}
	if err := row.set(v.raw); err != nil {
		return fmt.Errorf("%s: %w", v, err)
	}
	return nil
}

// String returns source and value for error messages.
func (v value) String() string { return fmt.Sprintf("%s %q", v.source, v.raw) }
