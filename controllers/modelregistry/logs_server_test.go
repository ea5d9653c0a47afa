package modelregistry

import (
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// The lines refused to broken are those of Model Registry v0.2.22. [S3]
func TestServerLogs(t *testing.T) {
	const (
		refused     = "W1121 18:14:28.970199   27559 connect.go:83] Retrying connection to MySQL (attempt 6/25): Error 1045 (28000): Access denied for user 'plain'@'127.0.0.1' (using password: YES)"
		unreachable = "W1121 18:14:29.970199   27559 connect.go:83] Retrying connection to PostgreSQL (attempt 7/25): failed to connect to `user=registry database=models`: dial tcp 127.0.0.1:1: connect: connection refused"
		ended       = "F1121 18:19:01.1   1 root.go:50] error: error connecting to datastore: failed to connect to MySQL: dial tcp 127.0.0.1:1: connect: connection refused"
		broken      = `F1121 18:19:01.1   1 root.go:50] error: error connecting to datastore: failed to build DSN with TLS: failed to parse PostgreSQL URL DSN: parse "postgresql://registry:hunter2 %/@pg/models": net/url: invalid userinfo`
		older       = "F0101 1 mlmd.cc:1] Check failed: absl::OkStatus() == status (OK vs. INTERNAL: no such table) Metadata store creation failed"
		// Model Registry (cmd/proxy.go) adds the marker to the last line of its log.
		brokenAlert = `F1121 18:19:01.1   1 root.go:50] {{ALERT}} error connecting to datastore: failed to build DSN with TLS: failed to parse PostgreSQL URL DSN: parse "postgresql://registry:hunter2 %/@pg/models": net/url: invalid userinfo`
		leakAlert   = "F1121 18:19:01.1   1 root.go:50] {{ALERT}} error connecting to datastore: something about postgresql://registry:hunter2 x@pg/models"
		leakCheck   = "F0101 1 mlmd.cc:1] Check failed: absl::OkStatus() == status (OK vs. INTERNAL: postgresql://registry:hunter2@pg/models) Metadata store creation failed"
		alert       = "W1 {{ALERT}} the schema is dirty"
		harmless    = "I1121 18:14:22.9   27559 service.go:60] Connected to EmbedMD service"
		leaking     = "error connecting to datastore: something about postgresql://registry:hunter2@pg/models"
	)
	for name, test := range map[string]struct {
		log          []string
		reason, want string
	}{
		"no error":                         {[]string{harmless}, "", ""},
		"login rejected by the database":   {[]string{harmless, refused}, ReasonConfiguration, "database configuration error: Error 1045 (28000): Access denied for user 'plain'@'127.0.0.1' (using password: YES)"},
		"last of several attempts":         {[]string{refused, unreachable, harmless}, ReasonConfiguration, "connection refused"},
		"error at exit":                    {[]string{refused, ended}, ReasonConfiguration, "failed to connect to MySQL: dial tcp 127.0.0.1:1"},
		"password with special characters": {[]string{broken}, ReasonConfiguration, "as %2F"},
		"failed check of an older server":  {[]string{refused, older, unreachable}, ReasonConfiguration, "Metadata store creation failed: INTERNAL: no such table"},
		"alert":                            {[]string{refused, alert, ended}, ReasonAlert, "the schema is dirty"},
		"error with a URL":                 {[]string{leaking}, "", ""},
		"alert about a password":           {[]string{brokenAlert}, ReasonConfiguration, "as %2F"},
		"alert with a URL":                 {[]string{leakAlert}, ReasonAlert, "something about postgresql://[redacted]@pg/models"},
		"failed check with a URL":          {[]string{leakCheck}, ReasonConfiguration, "postgresql://[redacted]@pg/models"},
	} {
		t.Run(name, func(t *testing.T) {
			got := scanLog(strings.Join(test.log, "\n"), redact.Values{})
			switch {
			case got == nil && test.want != "":
				t.Errorf("got no problem, want %q", test.want)
			case got != nil && (got.reason != test.reason || !strings.Contains(got.message, test.want) || test.want == ""):
				t.Errorf("got %+v, want %s: %q", *got, test.reason, test.want)
			case got != nil && strings.Contains(got.message, "hunter2"):
				t.Errorf("the message contains the password: %s", got.message)
			}
		})
	}
}

// An error from a log contains no URL.
func FuzzConnectionError(f *testing.F) {
	f.Add("error connecting to datastore: postgresql://u:p@h/d")
	f.Add("Retrying connection to MySQL (attempt 1/2): error connecting to datastore: x://y")
	f.Fuzz(func(t *testing.T, line string) {
		if cause := connectionError(line); strings.Contains(cause, "://") {
			t.Errorf("%q became %q", line, cause)
		}
	})
}
