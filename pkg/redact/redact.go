// Package redact takes credentials out of text that people read: messages of conditions and events, and the log. It knows how
// credentials look, and the values of the Secrets that this process has read.
package redact

import (
	"regexp"
	"strings"
)

// Mark stands where a credential stood.
const Mark = "[redacted]"

// sensitive are names of settings that hold a credential, at the end of a name.
const sensitive = `(?:password|passwd|passphrase|pwd|secret|token|credentials?|api[-_]?key|access[-_]?key(?:[-_]?id)?|account[-_]?key|private[-_]?key|signature)`

// sensitiveInJSON leaves the bare word secret out: in our log, and in specs, it is the name of one.
const sensitiveInJSON = `(?:\w*(?:password|passwd|passphrase|token|api_?key|access_?key(?:_?id)?|private_?key)|\w+[_-]?secret)`

type rule struct {
	pattern     *regexp.Regexp
	replacement string
}

// rules in the order in which they apply. Where it is not clear how far a credential goes, it goes far: addresses that cannot be
// parsed are the ones that get into messages.
var rules = []rule{
	// Keys, also those of which the end was cut off, with line ends or the escapes of them.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), Mark},
	// Drivers of MySQL in Go: user:password@tcp(host:port)/database.
	{regexp.MustCompile(`[^\s"'=]+:[^"'\n]*@(tcp[46]?|unix|udp)\(`), Mark + "@$1("},
	// Web addresses: a port is no password, and a path may hold an @.
	{regexp.MustCompile(`(?i)\b((?:https?|wss?|s3|git|ssh|grpcs?)://)[^\s"'/@]+@`), "${1}" + Mark + "@"},
	{regexp.MustCompile(`(?i)\b((?:https?|wss?|s3|git|ssh|grpcs?)://)[^\s"'/@:]+:[^\s"'/@]*[^\s"'/@0-9][^\s"'@]*@`), "${1}" + Mark + "@"},
	// Addresses of databases and brokers: everything up to the last @, whatever is in between.
	{regexp.MustCompile(`(?i)\b((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|mssql|sqlserver|oracle|sqlite|amqps?|nats|kafka|etcd|jdbc:[a-z]+)(?:\+[a-z0-9]+)*://)[^"'\n]*@`), "${1}" + Mark + "@"},
	// And where an address has no host, what follows the user.
	{regexp.MustCompile(`(?i)\b((?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|mssql|sqlserver|amqps?)(?:\+[a-z0-9]+)*://[^\s"'/@:]+:)[^\s"'0-9][^\s"']*`), "${1}" + Mark},
	// Headers.
	{regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Mark},
	// Settings: password=x, --token x, "secret":"x" with escaped quotes or without.
	{regexp.MustCompile(`(?i)\b([\w.-]*` + sensitive + `=)(?:'[^']*'|\\?"[^"]*"|[^\s&;,"'\\]+)`), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(--[\w-]*` + sensitive + ` )[^\s"']+`), "${1}" + Mark},
	{regexp.MustCompile(`(?i)(\\?"(?:[\w.-]+[_.-])?` + sensitiveInJSON + `\\?"\s*:\s*\\?")[^"\\]+`), "${1}" + Mark},
	{regexp.MustCompile(`(?im)^([ \t-]*[\w.-]*(?:password|passwd|passphrase)[ \t]*:[ \t]+)\S.*$`), "${1}" + Mark},
	// Tokens that are known by their looks: of Kubernetes and other JWTs, OpenShift, GitHub, GitLab, Hugging Face, AWS, Slack, OpenAI.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), Mark},
	{regexp.MustCompile(`\b(?:sha256~[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}|sk-[\w-]{20,})`), Mark},
}

// Text returns the text without credentials. What looks like none and is no value that was learnt stays as it is, and what was
// redacted before does too.
func Text(text string) string {
	if len(text) < minSensitiveLength {
		return text
	}
	text = recorded.redact(text)
	if !strings.ContainsAny(text, "=:-_ ~") {
		return text
	}
	for _, r := range rules {
		text = r.pattern.ReplaceAllString(text, r.replacement)
	}
	return text
}
