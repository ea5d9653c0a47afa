package modelregistry

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// passwordBytes is how many random bytes a generated password encodes.
const passwordBytes = 16

// newPassword is a password for a generated database, in letters that need no escape in a URL.
func newPassword() string {
	random := make([]byte, passwordBytes)
	// Read fills the slice or ends the process, it never returns an error.
	_, _ = rand.Read(random)
	return base64.URLEncoding.EncodeToString(random)
}

func checkDatabaseName(name string) error { return checkIdentifier("spec.postgres.database", name) }

// checkIdentifier refuses a name with which a generated database would not start. Empty is the default.
func checkIdentifier(field, name string) error {
	if name == "" || rules.IsIdentifier(name) {
		return nil
	}
	return fmt.Errorf("%s %q %s", field, name, rules.IdentifierDetail)
}
