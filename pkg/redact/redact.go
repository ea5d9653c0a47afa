// Package redact removes credentials from conditions, events, the log and printed objects. It recognizes credentials by their format or
// name, and the values of Secrets that a caller names.
package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Mark replaces a credential.
const Mark = "[redacted]"

const (
	// sensitiveWords are the ends of names with a credential as value, in addition to secret.
	sensitiveWords = `password|passwd|passphrase|pwd|token|credentials?|api[-_]?key|access[-_]?key(?:[-_]?id)?|account[-_]?key|private[-_]?key|signature`
	// sensitive matches the ends of names of settings that contain a credential.
	sensitive = `(?:` + sensitiveWords + `|secret)`
	// sensitiveInJSON does not match the bare name secret: in the log and in specs it is the name of a Secret.
	sensitiveInJSON = `[\w.-]*(?:` + sensitiveWords + `|[\w.-]secret)`
)

type rule struct {
	// needs are lowercase texts; each match contains one of them, in upper or lower case. Most messages contain none, and a search for them
	// is faster.
	needs       []string
	pattern     *regexp.Regexp
	replacement string
}

// rules are applied in order. If the end of a credential is ambiguous they redact too much, because messages often contain URLs that cannot
// be parsed.
var rules = []rule{
	// Private keys, including truncated ones, with line breaks or escaped line breaks.
	{[]string{"-----begin"}, regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), Mark},
	// Data source names of MySQL in Go: user:password@tcp(host:port)/database.
	{[]string{"@"}, regexp.MustCompile(`[^\s"'=]+:[^"'\n]*@(tcp[46]?|unix|udp)\(`), Mark + "@$1("},
	// URLs: a port is not a password, and a path may contain an @.
	{[]string{"@"}, regexp.MustCompile(`(?i)\b((?:https?|wss?|s3|git|ssh|grpcs?)://)[^\s"'/@]+@`), "${1}" + Mark + "@"},
	{[]string{"@"}, regexp.MustCompile(`(?i)\b((?:https?|wss?|s3|git|ssh|grpcs?)://)[^\s"'/@:]+:[^\s"'/@]*[^\s"'/@0-9][^\s"'@]*@`), "${1}" + Mark + "@"},
	// URLs of databases and brokers: everything up to the last @.
	{[]string{"@"}, regexp.MustCompile(`(?i)\b((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|mssql|sqlserver|oracle|sqlite|amqps?|nats|kafka|etcd|jdbc:[a-z]+)(?:\+[a-z0-9]+)*://)[^"'\n]*@`), "${1}" + Mark + "@"},
	// URLs of databases and brokers with a user but without a host: everything after the user.
	{[]string{"://"}, regexp.MustCompile(`(?i)\b((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|mssql|sqlserver|amqps?)(?:\+[a-z0-9]+)*://[^\s"'/@:]+:)[^\s"'0-9][^\s"']*`), "${1}" + Mark},
	// Headers.
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Mark},
	// Settings: password=x, --token x, "token":"x", also with escaped quotes; password: x at the start of a line.
	{[]string{"="}, regexp.MustCompile(`(?i)\b([\w.-]*` + sensitive + `=)(?:'[^']*'|\\?"[^"]*"|[^\s&;,"'\\]+)`), "${1}" + Mark},
	{[]string{"--"}, regexp.MustCompile(`(?i)(--[\w-]*` + sensitive + ` )[^\s"']+`), "${1}" + Mark},
	{[]string{"pass", "pwd", "token", "credential", "key", "signature", "secret"}, regexp.MustCompile(`(?i)(\\?"` + sensitiveInJSON + `\\?"\s*:\s*\\?")[^"\\]+`), "${1}" + Mark},
	{[]string{"pass"}, regexp.MustCompile(`(?im)^([ \t-]*[\w.-]*(?:password|passwd|passphrase)[ \t]*:[ \t]+)\S.*$`), "${1}" + Mark},
	// JWTs, such as those of Kubernetes, and tokens of OpenShift, GitHub, GitLab, Hugging Face, AWS, Slack, OpenAI.
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), Mark},
	{[]string{"sha256~", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "akia", "xox", "sk-"}, regexp.MustCompile(`\b(?:sha256~[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}|sk-[\w-]{20,})`), Mark},
}

// Text returns a text with Mark in place of credentials. It is idempotent.
func Text(text string) string {
	if len(text) < minSensitiveLength {
		return text
	}
	lower := strings.ToLower(text)
	for _, r := range rules {
		if slices.ContainsFunc(r.needs, func(part string) bool { return strings.Contains(lower, part) }) {
			text = r.pattern.ReplaceAllString(text, r.replacement)
		}
	}
	return text
}
