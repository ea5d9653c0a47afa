package tlsprofile

import (
	"crypto/tls"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Profile is what a TLS profile means to a Go listener.
type Profile struct {
	// Name is the type of the profile: Old, Intermediate, Modern or Custom.
	Name string
	// MinVersion is a tls.VersionTLS constant.
	MinVersion uint16
	// CipherSuites are allowed below TLS 1.3; Go does not allow a choice of those of TLS 1.3.
	CipherSuites []uint16
}

var versions = map[configv1.TLSProtocolVersion]uint16{
	configv1.VersionTLS10: tls.VersionTLS10, configv1.VersionTLS11: tls.VersionTLS11,
	configv1.VersionTLS12: tls.VersionTLS12, configv1.VersionTLS13: tls.VersionTLS13,
}

// openSSL maps the OpenSSL names that the API uses to the suites that Go has.
var openSSL = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA256":     tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-RSA-AES128-SHA256":       tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
	"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
	"AES128-SHA256":                 tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
	"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
	"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
	"DES-CBC3-SHA":                  tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA,
}

// Intermediate is the profile of clusters that choose none.
func Intermediate() Profile {
	p, _, _ := profile(configv1.TLSProfileIntermediateType, configv1.TLSProfiles[configv1.TLSProfileIntermediateType])
	return p
}

// FromAPIServer returns the profile that an APIServer object of config.openshift.io/v1 asks for, and the names of
// ciphers that Go does not have. No type and an unknown type mean Intermediate. An incomplete Custom profile is an
// error; the profile returned beside it is Intermediate.
func FromAPIServer(obj *unstructured.Unstructured) (Profile, []string, error) {
	server, err := resources.Decode[configv1.APIServer](obj)
	if err != nil {
		return Intermediate(), nil, err
	}
	chosen := server.Spec.TLSSecurityProfile
	switch {
	case chosen == nil || chosen.Type != configv1.TLSProfileCustomType && configv1.TLSProfiles[chosen.Type] == nil:
		return Intermediate(), nil, nil
	case chosen.Type != configv1.TLSProfileCustomType:
		return profile(chosen.Type, configv1.TLSProfiles[chosen.Type])
	case chosen.Custom == nil:
		return Intermediate(), nil, errors.New("the Custom profile has no body: fill spec.tlsSecurityProfile.custom")
	default:
		return profile(chosen.Type, &chosen.Custom.TLSProfileSpec)
	}
}

func profile(name configv1.TLSProfileType, spec *configv1.TLSProfileSpec) (Profile, []string, error) {
	version, ok := versions[spec.MinTLSVersion]
	if !ok {
		return Intermediate(), nil, fmt.Errorf("minTLSVersion %q is none of VersionTLS10 to VersionTLS13", spec.MinTLSVersion)
	}
	p := Profile{Name: string(name), MinVersion: version}
	var unknown []string
	for _, cipher := range spec.Ciphers {
		id, always := suite(cipher)
		switch {
		case always:
		case id == 0:
			unknown = append(unknown, cipher)
		default:
			p.CipherSuites = append(p.CipherSuites, id)
		}
	}
	if version < tls.VersionTLS13 && len(p.CipherSuites) == 0 {
		return Intermediate(), unknown, fmt.Errorf("the %s profile allows no cipher that this program has below TLS 1.3", name)
	}
	return p, unknown, nil
}

// suite finds a cipher by its OpenSSL or IANA name; always is true for suites that TLS 1.3 includes anyway.
func suite(name string) (id uint16, always bool) {
	if id, ok := openSSL[name]; ok {
		return id, false
	}
	for _, list := range [][]*tls.CipherSuite{tls.CipherSuites(), tls.InsecureCipherSuites()} {
		for _, s := range list {
			if s.Name == name {
				return s.ID, s.SupportedVersions[0] == tls.VersionTLS13
			}
		}
	}
	return 0, false
}
