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
	// minValue is the length in bytes below which a value under a telling key is a word that may stand anywhere.
	minSensitiveLength = 4
	// minOther is that length for values under other keys, which must have a letter and a digit besides.
	minOtherLength = 8
	// minLine is that length for the lines of a longer text.
	minLineLength = 16
	// maxSecrets bounds how many Secrets are remembered; the one that was read first is forgotten first.
	maxSecrets = 2000
	// maxValues and maxLength bound what is remembered of one.
	maxValues, maxValueLength = 200, 16 << 10
)

var (
	sensitiveKey = regexp.MustCompile(`(?i)(pass|pwd|secret|token|credential|key|uri|url|dsn|auth|cookie)`)
	// open are values that are no secret wherever they stand.
	publicValue = regexp.MustCompile(`(?i)^(?:true|false|none|null|https?://[^@]*|[a-z]+|-----BEGIN CERTIFICATE-----.*|` +
		`(?:-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\s*)+)$`)
	letterAndDigit = regexp.MustCompile(`[A-Za-z].*[0-9]|[0-9].*[A-Za-z]`)
)

// learnt are the values of the Secrets that this process has read.
var recorded = &valueStore{}

// values can be searched after each Secret at a cost that does not depend on how many were read before.
type valueStore struct {
	mu       sync.RWMutex
	bySecret map[types.NamespacedName][]string
	order    []types.NamespacedName
	// starting holds all values by their first bytes, the longest first, and one as often as Secrets hold it.
	byPrefix map[string][]string
}

// Secret remembers the values of a Secret, instead of those that it had.
func RecordSecret(s *corev1.Secret) {
	found := []string{}
	for key, value := range s.Data {
		found = append(found, redactableForms(key, string(value))...)
	}
	found = slices.DeleteFunc(found, func(value string) bool { return len(value) < minSensitiveLength })
	slices.Sort(found)
	found = slices.Compact(found)
	recorded.set(types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, found[:min(len(found), maxValues)])
}

// valuesOf returns the texts by which a value may show: itself and the password of an address, these in base64, its lines, and all
// of them as JSON.
func redactableForms(key, value string) []string {
	value = strings.TrimSpace(value)
	if len(value) > maxValueLength || !isSecret(key, value) {
		return nil
	}
	out := []string{value}
	if address, err := url.Parse(value); err == nil && address.User != nil {
		if password, given := address.User.Password(); given && len(password) >= minSensitiveLength {
			out = append(out, password, url.QueryEscape(password), url.PathEscape(password))
		}
	}
	for _, plain := range slices.Clone(out) {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(plain)))
	}
	out = append(out, longLines(value)...)
	for _, plain := range slices.Clone(out) {
		if quoted, err := json.Marshal(plain); err == nil {
			out = append(out, strings.Trim(string(quoted), `"`))
		}
	}
	return out
}

// longLines returns the lines of a text with several ones, without those that may stand anywhere.
func longLines(value string) []string {
	if !strings.Contains(value, "\n") {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(value, "\n") {
		if line = strings.TrimSpace(line); len(line) >= minLineLength && !strings.HasPrefix(line, "-----") {
			out = append(out, line)
		}
	}
	return out
}

func isSecret(key, value string) bool {
	telling := sensitiveKey.MatchString(key)
	if publicValue.MatchString(value) {
		return telling && len(value) >= minOtherLength && !strings.Contains(value, "://") && !strings.HasPrefix(value, "-----")
	}
	if telling {
		return len(value) >= minSensitiveLength
	}
	return len(value) >= minOtherLength && letterAndDigit.MatchString(value)
}

func (v *valueStore) set(name types.NamespacedName, found []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known := v.bySecret[name]
	if known && slices.Equal(before, found) {
		return
	}
	if v.bySecret == nil {
		v.bySecret, v.byPrefix = map[types.NamespacedName][]string{}, map[string][]string{}
	}
	if !known {
		v.order = append(v.order, name)
	}
	v.delete(name)
	v.bySecret[name] = found
	for _, value := range found {
		same := v.byPrefix[value[:minSensitiveLength]]
		at, _ := slices.BinarySearchFunc(same, value, longestFirst)
		v.byPrefix[value[:minSensitiveLength]] = slices.Insert(same, at, value)
	}
	if len(v.order) > maxSecrets {
		v.delete(v.order[0])
		v.order = v.order[1:]
	}
}

// forget drops the values of one Secret.
func (v *valueStore) delete(name types.NamespacedName) {
	for _, value := range v.bySecret[name] {
		start := value[:minSensitiveLength]
		at, _ := slices.BinarySearchFunc(v.byPrefix[start], value, longestFirst)
		v.byPrefix[start] = slices.Delete(v.byPrefix[start], at, at+1)
		if len(v.byPrefix[start]) == 0 {
			delete(v.byPrefix, start)
		}
	}
	delete(v.bySecret, name)
}

func longestFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// replace puts the mark in the place of each value in a text.
func (v *valueStore) redact(text string) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out strings.Builder
	done := 0
	for at := 0; at+minSensitiveLength <= len(text); {
		same := v.byPrefix[text[at:at+minSensitiveLength]]
		i := slices.IndexFunc(same, func(value string) bool { return strings.HasPrefix(text[at:], value) })
		if i < 0 {
			at++
			continue
		}
		out.WriteString(text[done:at] + Mark)
		at += len(same[i])
		done = at
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}
