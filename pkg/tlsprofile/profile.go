package tlsprofile

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Profile is the TLS configuration of a listener. The zero Profile keeps the defaults of a server.
type Profile struct {
	// Name is the type of the profile: Old, Intermediate, Modern, Custom or Configured.
	Name string
	// MinVersion is a tls.VersionTLS constant.
	MinVersion uint16
	// CipherSuites apply below TLS 1.3; Go does not support selecting those of TLS 1.3.
	CipherSuites []uint16
}

var versions = map[configv1.TLSProtocolVersion]uint16{
	configv1.VersionTLS10: tls.VersionTLS10, configv1.VersionTLS11: tls.VersionTLS11,
	configv1.VersionTLS12: tls.VersionTLS12, configv1.VersionTLS13: tls.VersionTLS13,
}

// openSSLCiphers maps the OpenSSL names in the API to the cipher suites of Go.
var openSSLCiphers = map[string]uint16{
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

// Configured is the name of the profile in the settings of the manager, which overrides that of the cluster.
const Configured = "Configured"

// tls13OnlyCipher is a TLS 1.2 cipher with a pre-shared key. Servers have no such key, so they accept only TLS 1.3.
const tls13OnlyCipher = "PSK-AES256-GCM-SHA384"

// FromFlags returns the profile of the TLS flags of Kubernetes components; the zero Profile if both are empty.
func FromFlags(minVersion, cipherSuites string) (Profile, error) {
	ciphers := strings.FieldsFunc(cipherSuites, func(r rune) bool { return r == ',' || r == ' ' })
	if minVersion == "" && len(ciphers) == 0 {
		return Profile{}, nil
	}
	version, known := versions[configv1.TLSProtocolVersion(cmp.Or(minVersion, string(configv1.VersionTLS12)))]
	suites, err := suitesOf(ciphers)
	switch {
	case !known || version < tls.VersionTLS12:
		return Profile{}, fmt.Errorf("--tls-min-version %q: choose VersionTLS12 or VersionTLS13", minVersion)
	case err != nil:
		return Profile{}, err
	case version == tls.VersionTLS13 && len(ciphers) > 0:
		return Profile{}, errors.New("--tls-cipher-suites has no effect on TLS 1.3: remove it, or set --tls-min-version to VersionTLS12")
	}
	return Profile{Name: Configured, MinVersion: version, CipherSuites: suites}, nil
}

// suitesOf returns the cipher suites of TLS 1.2 and older by name.
func suitesOf(names []string) ([]uint16, error) {
	var suites []uint16
	for _, name := range names {
		i := slices.IndexFunc(tls12Suites, func(id uint16) bool { return tls.CipherSuiteName(id) == name })
		if i < 0 {
			return nil, fmt.Errorf("--tls-cipher-suites %q: choose from %s", name, strings.Join(cipherNames(tls12Suites), ", "))
		}
		suites = append(suites, tls12Suites[i])
	}
	return suites, nil
}

func cipherNames(suites []uint16) []string {
	names := make([]string, 0, len(suites))
	for _, id := range suites {
		names = append(names, tls.CipherSuiteName(id))
	}
	return names
}

// Flags returns the TLS flags for a server with the flags of Kubernetes components; none for the zero Profile.
func (p Profile) Flags() []string {
	var flags []string
	for name, version := range versions {
		if version == p.MinVersion {
			flags = append(flags, "--tls-min-version="+string(name))
		}
	}
	if len(p.CipherSuites) > 0 && p.MinVersion < tls.VersionTLS13 {
		flags = append(flags, "--tls-cipher-suites="+strings.Join(cipherNames(p.CipherSuites), ","))
	}
	return flags
}

// OpenSSL returns the cipher list for a server that uses OpenSSL and has no option for the version; empty if no cipher is selected.
func (p Profile) OpenSSL() string {
	if p.MinVersion >= tls.VersionTLS13 {
		return tls13OnlyCipher
	}
	var names []string
	for _, id := range p.CipherSuites {
		for name, known := range openSSLCiphers {
			if known == id {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ":")
}

// Equal reports whether both profiles are equal.
func (p Profile) Equal(q Profile) bool {
	return p.Name == q.Name && p.MinVersion == q.MinVersion && slices.Equal(p.CipherSuites, q.CipherSuites)
}

// ForPods returns the profile for servers in pods from an APIServer object of config.openshift.io/v1: that of the cluster if spec.tlsAdherence
// requires it of all components, otherwise the zero Profile. Unknown policies count as strict, as the API requires.
func ForPods(obj *unstructured.Unstructured) Profile {
	server, err := decode(obj)
	if err != nil || server.Spec.TLSAdherence == configv1.TLSAdherencePolicyNoOpinion ||
		server.Spec.TLSAdherence == configv1.TLSAdherencePolicyLegacyAdheringComponentsOnly {
		return Profile{}
	}
	p, _, _ := profileOf(server) // Intermediate if it is incomplete; Watcher logs the error
	return p
}

// tls12Suites are the cipher suites that --tls-cipher-suites accepts, in a fixed order.
var tls12Suites = slices.Sorted(maps.Values(openSSLCiphers))

// Intermediate returns the default profile of clusters.
func Intermediate() Profile {
	p, _, _ := newProfile(configv1.TLSProfileIntermediateType, configv1.TLSProfiles[configv1.TLSProfileIntermediateType])
	return p
}

// FromAPIServer returns the profile of an APIServer object of config.openshift.io/v1, and the names of ciphers that Go does not support. Without
// a type, and for unknown types, it returns Intermediate. If it cannot decode the object or use a Custom profile, it returns Intermediate
// and an error.
func FromAPIServer(obj *unstructured.Unstructured) (Profile, []string, error) {
	server, err := decode(obj)
	if err != nil {
		return Intermediate(), nil, err
	}
	return profileOf(server)
}

func profileOf(server *configv1.APIServer) (Profile, []string, error) {
	selected := server.Spec.TLSSecurityProfile
	switch {
	case selected == nil || selected.Type != configv1.TLSProfileCustomType && configv1.TLSProfiles[selected.Type] == nil:
		return Intermediate(), nil, nil
	case selected.Type != configv1.TLSProfileCustomType:
		return newProfile(selected.Type, configv1.TLSProfiles[selected.Type])
	case selected.Custom == nil:
		return Intermediate(), nil, errors.New("the profile Custom is empty: set spec.tlsSecurityProfile.custom")
	default:
		return newProfile(selected.Type, &selected.Custom.TLSProfileSpec)
	}
}

func decode(obj *unstructured.Unstructured) (*configv1.APIServer, error) {
	server := &configv1.APIServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, server); err != nil {
		return nil, fmt.Errorf("reading the APIServer %s: %w", obj.GetName(), err)
	}
	return server, nil
}

func newProfile(name configv1.TLSProfileType, spec *configv1.TLSProfileSpec) (Profile, []string, error) {
	version, ok := versions[spec.MinTLSVersion]
	if !ok {
		return Intermediate(), nil, fmt.Errorf("minTLSVersion %q must be one of VersionTLS10 to VersionTLS13", spec.MinTLSVersion)
	}
	p := Profile{Name: string(name), MinVersion: version}
	var unknown []string
	for _, cipher := range spec.Ciphers {
		id, alwaysEnabled := findSuite(cipher)
		switch {
		case alwaysEnabled:
		case id == 0:
			unknown = append(unknown, cipher)
		default:
			p.CipherSuites = append(p.CipherSuites, id)
		}
	}
	if version < tls.VersionTLS13 && len(p.CipherSuites) == 0 {
		return Intermediate(), unknown, fmt.Errorf("the %s profile allows no cipher that this program has below TLS 1.3: add one, or set minTLSVersion to VersionTLS13", name)
	}
	return p, unknown, nil
}

// findSuite returns a cipher suite by its OpenSSL or IANA name. Suites of TLS 1.3 are always enabled.
func findSuite(name string) (id uint16, alwaysEnabled bool) {
	if id, ok := openSSLCiphers[name]; ok {
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
