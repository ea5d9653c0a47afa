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

func ignore(string) error { return nil }

func text(dst *string) func(string) error {
	return func(raw string) error {
		*dst = strings.TrimSpace(raw)
		return nil
	}
}

func required(dst *string) func(string) error {
	return func(raw string) error {
		if *dst = strings.TrimSpace(raw); *dst == "" {
			return errors.New("must not be empty")
		}
		return nil
	}
}

func boolean(dst *bool) func(string) error {
	return func(raw string) (err error) {
		if *dst, err = strconv.ParseBool(strings.TrimSpace(raw)); err != nil {
			return errors.New("must be true or false")
		}
		return nil
	}
}

func duration(dst *time.Duration) func(string) error {
	return func(raw string) (err error) {
		if *dst, err = time.ParseDuration(strings.TrimSpace(raw)); err != nil || *dst <= 0 {
			return errors.New(`must be a duration above zero, for example "30s"`)
		}
		return nil
	}
}

func port(dst *int) func(string) error {
	return func(raw string) (err error) {
		if *dst, err = strconv.Atoi(strings.TrimSpace(raw)); err != nil || *dst < 1 || *dst > 65535 {
			return errors.New("must be a port, 1 to 65535")
		}
		return nil
	}
}

// address accepts what controller-runtime's listeners do: host:port, or "0" for no listener.
func address(dst *string) func(string) error {
	return func(raw string) error {
		if *dst = strings.TrimSpace(raw); *dst == "0" {
			return nil
		}
		_, p, err := net.SplitHostPort(*dst)
		if n, convErr := strconv.Atoi(p); err != nil || convErr != nil || n < 0 || n > 65535 {
			return errors.New(`must be host:port or :port, or "0" for no listener`)
		}
		return nil
	}
}

// oneOf takes one of a few words.
func oneOf[T ~string](dst *T, known ...T) func(string) error {
	words := make([]string, len(known))
	for i, word := range known {
		words[i] = string(word)
	}
	last := len(words) - 1
	return func(raw string) error {
		if *dst = T(strings.TrimSpace(raw)); !slices.Contains(known, *dst) {
			return errors.New("must be " + strings.Join(words[:last], ", ") + " or " + words[last])
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
	return func(raw string) error {
		*dst = strings.TrimSpace(raw)
		if len(validation.IsDNS1123Subdomain(*dst)) > 0 {
			return errors.New("must be an object name: at most 253 of a-z, 0-9, - and ., letters or digits at both ends")
		}
		return nil
	}
}

// prefix checks the prefix together with what follows it.
func prefix(dst *string) func(string) error {
	return func(raw string) error {
		*dst = strings.TrimSpace(raw)
		if len(validation.IsDNS1123Subdomain(*dst+"x")) > 0 {
			return errors.New("must start an object name: a-z, 0-9, - and ., a letter or digit first")
		}
		return nil
	}
}

// image accepts any reference a kubelet might; only what cannot be one is refused.
func image(dst *string) func(string) error {
	return func(raw string) error {
		*dst = strings.TrimSpace(raw)
		if strings.ContainsAny(*dst, " \t\n\"'") || strings.Contains(*dst, "://") {
			return errors.New("must be an image reference such as quay.io/opendatahub/mlflow:odh-stable")
		}
		return nil
	}
}

// setURL normalises once, so that no path is appended after a slash, and tells real URLs from placeholders:
// the originals published both placeholders as if a user had configured them.
func (m *MLflow) setURL(raw string) error {
	base := strings.TrimRight(strings.TrimSpace(raw), "/")
	if base == "" {
		m.ExternalURL = ""
		return nil
	}
	if !strings.Contains(base, "://") {
		base = "https://" + base // a bare host has only one sensible reading, and existing installations start with it
	}
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
		return errors.New("must be an http or https URL with a host, for example https://gateway.apps.example.org")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be a base URL without user, query and fragment")
	}
	m.ExternalURL = base
	if base == ExampleURL || base == PlaceholderURL {
		m.ExternalURL = "" // any user may register the host
	}
	return nil
}

func isTrue(raw string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(raw))
	return err == nil && on
}

// value is what a setting was set to, and by whom.
type value struct {
	from string
	raw  string
}

// String names source and value for an error message.
func (v value) String() string { return fmt.Sprintf("%s %q", v.from, v.raw) }
