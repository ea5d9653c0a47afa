package resources

import (
	"crypto/rand"
	"encoding/base64"
)

// passwordBytes is the number of random bytes in a password.
const passwordBytes = 16

// NewPassword returns a random password for a generated database that needs no escaping in a URL.
func NewPassword() string {
	random := make([]byte, passwordBytes)
	_, _ = rand.Read(random) // it never fails
	return base64.URLEncoding.EncodeToString(random)
}
