package tlsprofile

import (
	"crypto/tls"
	"sync/atomic"
)

// Listener holds the profile in force for any number of listeners. It is safe for concurrent use.
type Listener struct {
	current atomic.Pointer[Profile]
}

// NewListener returns a Listener that starts with Intermediate.
func NewListener() *Listener {
	l := &Listener{}
	l.Set(Intermediate())
	return l
}

// Set puts a profile in force for connections to come.
func (l *Listener) Set(p Profile) { l.current.Store(&p) }

// Current returns the profile in force.
func (l *Listener) Current() Profile { return *l.current.Load() }

// Configure makes a server's configuration ask for the profile at each handshake. It fits TLSOpts of
// controller-runtime, which fills in the certificate afterwards.
func (l *Listener) Configure(c *tls.Config) {
	c.NextProtos = []string{"h2", "http/1.1"}
	c.MinVersion = tls.VersionTLS12
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		p := l.current.Load()
		out := c.Clone()
		out.GetConfigForClient = nil
		out.MinVersion = p.MinVersion
		out.CipherSuites = p.CipherSuites
		return out, nil
	}
}
