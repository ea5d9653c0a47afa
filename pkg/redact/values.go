package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// minSensitiveLength is the minimum length in bytes of a value under a sensitive key. Shorter values may occur in any text.
	minSensitiveLength = 4
	// minOtherLength is the minimum length under other keys, where values also need a letter and a digit, and of words under sensitive keys.
	minOtherLength = 8
	// minLineLength is the minimum length of a line of a multi-line value.
	minLineLength = 16
	// maxValueLength is the maximum length of a value. Longer values are not redacted, because they are not passwords.
	maxValueLength = 16 << 10
)

var (
	sensitiveKey = regexp.MustCompile(`(?i)(pass|pwd|secret|token|credential|key|uri|url|dsn|auth|cookie)`)
	// publicValue matches values that are not secret, except for words under a sensitive key.
	publicValue = regexp.MustCompile(`(?i)^(?:true|false|none|null|https?://[^@]*|[a-z]+|-----BEGIN CERTIFICATE-----.*|` +
		`(?:-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\s*)+)$`)
	letterAndDigit = regexp.MustCompile(`[A-Za-z].*[0-9]|[0-9].*[A-Za-z]`)
)

// Values redacts the values of Secrets, and the credentials that [Text] recognizes. The zero value has no Secrets.
type Values struct{ replacer *strings.Replacer }

// ValuesOf returns a Values that redacts the values of the given Secrets.
func ValuesOf(secrets ...*corev1.Secret) Values {
	forms := sets.New[string]()
	for _, s := range secrets {
		for key, value := range s.Data {
			forms.Insert(redactableForms(key, string(value))...)
		}
	}
	var pairs []string
	for _, form := range slices.SortedFunc(maps.Keys(forms), longestFirst) { // a replacer prefers earlier pairs
		if len(form) >= minSensitiveLength {
			pairs = append(pairs, form, Mark)
		}
	}
	return Values{strings.NewReplacer(pairs...)}
}

func longestFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// Text redacts the values in a text, and the credentials that the function [Text] recognizes.
func (v Values) Text(text string) string {
	if v.replacer != nil {
		text = v.replacer.Replace(text)
	}
	return Text(text)
}

// redactableForms returns the forms in which a secret value may occur: the value, the password of a URL also in its escaped forms, all of
// them in base64, the lines of the value, and everything in JSON. It returns nil for other values.
func redactableForms(key, value string) []string {
	value = strings.TrimSpace(value)
	if len(value) > maxValueLength || !isSecret(key, value) {
		return nil
	}
	forms := []string{value}
	if address, err := url.Parse(value); err == nil && address.User != nil {
		if password, found := address.User.Password(); found && len(password) >= minSensitiveLength {
			forms = append(forms, password, url.QueryEscape(password), url.PathEscape(password))
		}
	}
	for _, plain := range slices.Clone(forms) {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(plain)))
	}
	forms = append(forms, longLines(value)...)
	for _, plain := range slices.Clone(forms) {
		if quoted, err := json.Marshal(plain); err == nil {
			forms = append(forms, strings.Trim(string(quoted), `"`))
		}
	}
	return forms
}

// longLines returns the lines of at least minLineLength bytes in a multi-line text, except PEM headers.
func longLines(value string) []string {
	if !strings.Contains(value, "\n") {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(value, "\n") {
		if line = strings.TrimSpace(line); len(line) >= minLineLength && !strings.HasPrefix(line, "-----") {
			lines = append(lines, line)
		}
	}
	return lines
}

func isSecret(key, value string) bool {
	isSensitiveKey := sensitiveKey.MatchString(key)
	if publicValue.MatchString(value) {
		return isSensitiveKey && len(value) >= minOtherLength && !strings.Contains(value, "://") && !strings.HasPrefix(value, "-----")
	}
	if isSensitiveKey {
		return len(value) >= minSensitiveLength
	}
	return len(value) >= minOtherLength && letterAndDigit.MatchString(value)
}
