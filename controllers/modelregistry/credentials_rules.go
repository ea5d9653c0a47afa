package modelregistry

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"regexp"
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

// identifier is what the image of the database accepts as the name of a user or a database.
var identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`)

func checkDatabaseName(name string) error { return checkIdentifier("spec.postgres.database", name) }

// checkIdentifier refuses a name with which a generated database would not start. Empty is the default.
func checkIdentifier(field, name string) error {
	if name == "" || identifier.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%s %q cannot be that of a generated database: use at most 63 letters, digits and underscores, and no digit first", field, name)
}
