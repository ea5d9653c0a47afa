package resources

import (
	"crypto/rand"
	"encoding/base64"
)

// passwordBytes is how many random bytes a generated password encodes.
const passwordBytes = 16

// NewPassword is a password for a generated database, in letters that need no escape in a URL.
func NewPassword() string {
	random := make([]byte, passwordBytes)
	_, _ = rand.Read(random) // it fills the slice or ends the process
	return base64.URLEncoding.EncodeToString(random)
}
