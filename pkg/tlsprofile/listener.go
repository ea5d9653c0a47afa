package tlsprofile

import (
	"crypto/tls"
	"sync/atomic"
)

// Listener holds the current profile for any number of listeners. It is safe for concurrent use.
type Listener struct {
	current atomic.Pointer[Profile]
}

// NewListener returns a Listener with the profile Intermediate.
func NewListener() *Listener {
	l := &Listener{}
	l.Set(Intermediate())
	return l
}

// Set sets the profile for new connections.
func (l *Listener) Set(p Profile) { l.current.Store(&p) }

// Current returns the current profile.
func (l *Listener) Current() Profile { return *l.current.Load() }

// Configure makes a server use the current profile for each handshake. It is an element of TLSOpts of controller-runtime, which sets the
// certificate afterwards.
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
