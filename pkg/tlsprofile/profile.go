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

// Profile is what a TLS profile means to a listener. The zero Profile leaves a server its own defaults.
type Profile struct {
	// Name is the type of the profile, Old, Intermediate, Modern or Custom, or Configured.
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

// Configured is the name of the profile that the settings of the manager choose, whatever the cluster chooses.
const Configured = "Configured"

// noCipher is a cipher of TLS 1.2 that requires a pre-shared key. Servers have none, so that they accept only TLS 1.3.
const noCipher = "PSK-AES256-GCM-SHA384"

// FromFlags returns the profile of flags as programs of Kubernetes have them; the zero Profile if both are empty.
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

// suitesOf returns the cipher suites of these names below TLS 1.3.
func suitesOf(names []string) ([]uint16, error) {
	var suites []uint16
	for _, name := range names {
		i := slices.IndexFunc(belowTLS13, func(id uint16) bool { return tls.CipherSuiteName(id) == name })
		if i < 0 {
			return nil, fmt.Errorf("--tls-cipher-suites %q: choose from %s", name, strings.Join(cipherNames(belowTLS13), ", "))
		}
		suites = append(suites, belowTLS13[i])
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

// Flags are the arguments of a server that has those of Kubernetes' programs; none for the zero Profile.
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

// OpenSSL is the list of ciphers for a server that links OpenSSL and has no option for the version; empty for its own.
func (p Profile) OpenSSL() string {
	if p.MinVersion >= tls.VersionTLS13 {
		return noCipher
	}
	var names []string
	for _, id := range p.CipherSuites {
		for name, known := range openSSL {
			if known == id {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ":")
}

// Equal reports whether both demand the same.
func (p Profile) Equal(q Profile) bool {
	return p.Name == q.Name && p.MinVersion == q.MinVersion && slices.Equal(p.CipherSuites, q.CipherSuites)
}

// ForPods returns the profile that servers in pods have to offer by an APIServer object of config.openshift.io/v1: that of the cluster if
// spec.tlsAdherence makes all components follow it, else the zero Profile. An unknown policy counts as strict, as the API demands.
func ForPods(obj *unstructured.Unstructured) Profile {
	server, err := decode(obj)
	if err != nil || server.Spec.TLSAdherence == configv1.TLSAdherencePolicyNoOpinion ||
		server.Spec.TLSAdherence == configv1.TLSAdherencePolicyLegacyAdheringComponentsOnly {
		return Profile{}
	}
	p, _, _ := profileOf(server) // Intermediate for one that is incomplete; Watcher logs why
	return p
}

// belowTLS13 are all suites that a profile can choose, in a fixed order.
var belowTLS13 = slices.Sorted(maps.Values(openSSL))

// Intermediate is the profile of clusters that choose none.
func Intermediate() Profile {
	p, _, _ := profile(configv1.TLSProfileIntermediateType, configv1.TLSProfiles[configv1.TLSProfileIntermediateType])
	return p
}

// FromAPIServer returns the profile that an APIServer object of config.openshift.io/v1 asks for, and the names of
// ciphers that Go does not have. No type and an unknown type mean Intermediate. An incomplete Custom profile is an
// error; the profile returned beside it is Intermediate.
func FromAPIServer(obj *unstructured.Unstructured) (Profile, []string, error) {
	server, err := decode(obj)
	if err != nil {
		return Intermediate(), nil, err
	}
	return profileOf(server)
}

func profileOf(server *configv1.APIServer) (Profile, []string, error) {
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

func decode(obj *unstructured.Unstructured) (*configv1.APIServer, error) {
	server := &configv1.APIServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, server); err != nil {
		return nil, fmt.Errorf("reading the APIServer %s: %w", obj.GetName(), err)
	}
	return server, nil
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
