package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// minSensitiveLength is the minimum length in bytes of a value under a sensitive key. Shorter values may occur in any text.
	minSensitiveLength = 4
	// minOtherLength is the minimum length under other keys. These values also need a letter and a digit.
	minOtherLength = 8
	// minLineLength is the minimum length of a line of a multi-line value.
	minLineLength = 16
	// maxSecrets is the number of stored Secrets; the oldest one is evicted.
	maxSecrets = 2000
	// maxValues is the number of stored values per Secret.
	maxValues      = 200
	maxValueLength = 16 << 10
)

var (
	sensitiveKey = regexp.MustCompile(`(?i)(pass|pwd|secret|token|credential|key|uri|url|dsn|auth|cookie)`)
	// publicValue matches values that are not secret under any key.
	publicValue = regexp.MustCompile(`(?i)^(?:true|false|none|null|https?://[^@]*|[a-z]+|-----BEGIN CERTIFICATE-----.*|` +
		`(?:-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\s*)+)$`)
	letterAndDigit = regexp.MustCompile(`[A-Za-z].*[0-9]|[0-9].*[A-Za-z]`)
)

// recorded holds the values of the Secrets that this process has read.
var recorded = &valueStore{}

// valueStore finds values in a text in a time that does not depend on the number of Secrets.
type valueStore struct {
	mu       sync.RWMutex
	bySecret map[types.NamespacedName][]string
	order    []types.NamespacedName
	// byPrefix holds all values by their first bytes, the longest first, and once per Secret that has them.
	byPrefix map[string][]string
}

// RecordSecret stores the values of a Secret and replaces its earlier ones.
func RecordSecret(s *corev1.Secret) {
	values := []string{}
	for key, value := range s.Data {
		values = append(values, redactableForms(key, string(value))...)
	}
	values = slices.DeleteFunc(values, func(value string) bool { return len(value) < minSensitiveLength })
	slices.Sort(values)
	values = slices.Compact(values)
	recorded.set(types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, values[:min(len(values), maxValues)])
}

// redactableForms returns the forms in which a value may occur: the value, the password of a URL, both in base64, the lines, and all of
// them in JSON.
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

// longLines returns the lines of a multi-line text from minLineLength, without PEM headers.
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

func (v *valueStore) set(name types.NamespacedName, values []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	previous, known := v.bySecret[name]
	if known && slices.Equal(previous, values) {
		return
	}
	if v.bySecret == nil {
		v.bySecret, v.byPrefix = map[types.NamespacedName][]string{}, map[string][]string{}
	}
	if !known {
		v.order = append(v.order, name)
	}
	v.delete(name)
	v.bySecret[name] = values
	for _, value := range values {
		candidates := v.byPrefix[value[:minSensitiveLength]]
		at, _ := slices.BinarySearchFunc(candidates, value, longestFirst)
		v.byPrefix[value[:minSensitiveLength]] = slices.Insert(candidates, at, value)
	}
	if len(v.order) > maxSecrets {
		v.delete(v.order[0])
		v.order = v.order[1:]
	}
}

// delete deletes the values of one Secret.
func (v *valueStore) delete(name types.NamespacedName) {
	for _, value := range v.bySecret[name] {
		prefix := value[:minSensitiveLength]
		at, _ := slices.BinarySearchFunc(v.byPrefix[prefix], value, longestFirst)
		v.byPrefix[prefix] = slices.Delete(v.byPrefix[prefix], at, at+1)
		if len(v.byPrefix[prefix]) == 0 {
			delete(v.byPrefix, prefix)
		}
	}
	delete(v.bySecret, name)
}

func longestFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// redact replaces each stored value in a text with Mark.
func (v *valueStore) redact(text string) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out strings.Builder
	done := 0
	for at := 0; at+minSensitiveLength <= len(text); {
		candidates := v.byPrefix[text[at:at+minSensitiveLength]]
		i := slices.IndexFunc(candidates, func(value string) bool { return strings.HasPrefix(text[at:], value) })
		if i < 0 {
			at++
			continue
		}
		out.WriteString(text[done:at] + Mark)
		at += len(candidates[i])
		done = at
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}
