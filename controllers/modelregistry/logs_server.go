package modelregistry

import (
	"regexp"
	"strings"
)

// connecting is how a server that is written in Go logs why it does not reach its database: at each attempt, and at its end.
var connecting = regexp.MustCompile(`(?:Retrying connection to \w+ \(attempt \d+/\d+\)|error connecting to datastore): (.*)$`)

// unreadable is in lines of a server that cannot read the address of its database. They may quote the address with the
// password in it, so nothing of them is repeated.
var unreadable = regexp.MustCompile(`failed to parse PostgreSQL URL DSN|failed to parse as URL|cannot parse .?postgres`)

// escapePassword is the cure of a password that ends in the middle, because the kubelet pastes it into a URL.
const escapePassword = "the address of the database cannot be read: where the password has one of / ? # % or a space, " +
	"let its Secret hold %2F %3F %23 %25 or %20 instead"

// unconnected is what a line of the log says about a database that cannot be used, "" when it says nothing. It never holds an
// address, since that may have a password in it.
func unconnected(line string) string {
	if unreadable.MatchString(line) {
		return escapePassword
	}
	found := connecting.FindStringSubmatch(line)
	if found == nil || strings.Contains(found[1], "://") {
		return ""
	}
	return found[1]
}
