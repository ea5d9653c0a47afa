package modelregistry

import (
	"net/netip"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// Values that become parts of a connection string or of a manifest. They are wider than what a database allows and narrower
// than what changes the structure around them.
var (
	hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?$`)
	userPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
	// identifierPattern is what the image of a generated database accepts as the name of a user or a database.
	identifierPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	databasePattern   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

const (
	hostLength, userLength, databaseLength = 253, 128, 64

	hostDetail     = "must be a host name or an IP address, without scheme, port and path"
	userDetail     = "must be at most 128 letters, digits and characters of _ . @ + - and begin with a letter, a digit or _"
	databaseDetail = "must be at most 64 letters, digits and characters of _ . - and begin with a letter, a digit or _"
	// IdentifierDetail says what IsIdentifier demands.
	IdentifierDetail = "must be at most 63 letters, digits and underscores and begin with no digit, to be that of a generated database"
	imageDetail      = "must be an image reference such as registry.example.com/team/name:tag"
)

// text is a value that a user can write, and the rule that it has to follow.
type text struct {
	path   *field.Path
	value  string
	valid  func(string) bool
	detail string
}

// patternErrors refuses values that are no names of what they should be. A value that the registry had before is accepted:
// it may work, and the registry must stay editable.
func patternErrors(registry, old *v1beta1.ModelRegistry) field.ErrorList {
	before := map[string]string{}
	if old != nil {
		for _, t := range texts(&old.Spec) {
			before[t.path.String()] = t.value
		}
	}
	var errs field.ErrorList
	for _, t := range texts(&registry.Spec) {
		if t.value == "" || t.valid(t.value) || before[t.path.String()] == t.value {
			continue
		}
		errs = append(errs, field.Invalid(t.path, t.value, t.detail))
	}
	return errs
}

func texts(s *v1beta1.ModelRegistrySpec) []text {
	spec := field.NewPath("spec")
	all := []text{{spec.Child("rest", "image"), s.Rest.Image, isImage, imageDetail}}
	if p, path := s.Postgres, spec.Child("postgres"); p != nil {
		user, database := text{path.Child("username"), p.Username, isUser, userDetail}, text{path.Child("database"), p.Database, isDatabase, databaseDetail}
		if isTrue(p.GenerateDeployment) {
			user.valid, user.detail, database.valid, database.detail = IsIdentifier, IdentifierDetail, IsIdentifier, IdentifierDetail
		}
		all = append(all, user, database,
			text{path.Child("host"), p.Host, isHost, hostDetail},
			text{path.Child("hostAddress"), p.HostAddress, isHost, hostDetail},
			text{path.Child("image"), p.Image, isImage, imageDetail})
	}
	if m, path := s.MySQL, spec.Child("mysql"); m != nil {
		all = append(all,
			text{path.Child("host"), m.Host, isHost, hostDetail},
			text{path.Child("username"), m.Username, isUser, userDetail},
			text{path.Child("database"), m.Database, isDatabase, databaseDetail})
	}
	for name, proxy := range map[string]*v1beta1.ProxyConfig{"oauthProxy": s.OAuthProxy, "kubeRBACProxy": s.KubeRBACProxy} {
		if proxy != nil {
			all = append(all, text{spec.Child(name, "image"), proxy.Image, isImage, imageDetail})
		}
	}
	return all
}

func isHost(value string) bool {
	if address, err := netip.ParseAddr(value); err == nil {
		return address.Zone() == "" // a zone is one of the node, which the author does not know
	}
	if inner, ok := strings.CutPrefix(value, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		return ok && err == nil && address.Is6() && address.Zone() == ""
	}
	return len(value) <= hostLength && hostPattern.MatchString(value)
}

func isUser(value string) bool { return len(value) <= userLength && userPattern.MatchString(value) }

func isDatabase(value string) bool {
	return len(value) <= databaseLength && databasePattern.MatchString(value)
}

// IsIdentifier says whether a generated database can have a user or a database of this name. The controller, which makes it, asks
// too.
func IsIdentifier(value string) bool { return identifierPattern.MatchString(value) }

func isImage(value string) bool { return imagePattern.MatchString(value) }
