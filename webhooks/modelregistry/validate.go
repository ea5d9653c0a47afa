package modelregistry

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Suffixes that make longer names of the name of a registry.
const (
	hostSuffix     = "-rest"     // a label of the host of its Route
	databaseSuffix = "-postgres" // the Service of a generated database, and a label
)

const noDatabase = "required one of `postgres` or `mysql` database: set spec.postgres.generateDeployment to true for a database that is made " +
	"with the registry, or name an existing one in spec.postgres.host or spec.mysql.host"

// Validate returns what is wrong with a registry, new or not. It reads no old object and no cluster, so the controller can
// ask it too.
func Validate(registry *v1beta1.ModelRegistry, s Settings) field.ErrorList {
	errs := namespaceErrors(registry.Namespace, s.Namespace, "registries live in")
	spec := field.NewPath("spec")
	postgres := registry.Spec.Postgres
	if postgres == nil && registry.Spec.MySQL == nil {
		return append(errs, field.Required(spec.Child("postgres"), noDatabase), field.Required(spec.Child("mysql"), noDatabase))
	}
	if postgres == nil {
		return errs
	}
	path := spec.Child("postgres")
	if generatesDatabase(&registry.Spec) {
		const detail = "host should not be set when auto-provisioning is enabled: remove it, or set spec.postgres.generateDeployment to false"
		if postgres.Host != "" {
			errs = append(errs, field.Invalid(path.Child("host"), postgres.Host, detail))
		} else if postgres.HostAddress != "" {
			errs = append(errs, field.Invalid(path.Child("host"), postgres.HostAddress, detail))
		}
	}
	// The schema says this of v1beta1; through v1alpha1 it comes in past the schema.
	policies := []v1beta1.RetentionPolicy{v1beta1.RetainData, v1beta1.DeleteData}
	if postgres.RetentionPolicy != "" && !slices.Contains(policies, postgres.RetentionPolicy) {
		errs = append(errs, field.NotSupported(path.Child("retentionPolicy"), postgres.RetentionPolicy, policies))
	}
	errs = append(errs, sizeErrors(postgres.Storage, path.Child("storage"))...)
	errs = append(errs, backupErrors(postgres.Backup, path.Child("backup"))...)
	described := generatesDatabase(&registry.Spec) || postgres.Host+postgres.HostAddress+postgres.Username+postgres.Database != "" || postgres.PasswordSecret != nil
	if described && postgres.ConnectionSecretName != "" {
		errs = append(errs, field.Invalid(path.Child("connectionSecretName"), postgres.ConnectionSecretName,
			"it is used instead of generateDeployment, host, hostAddress, username, database and passwordSecret: set one or the other"))
	}
	return errs
}

func backupErrors(backup *v1beta1.PostgresBackup, path *field.Path) field.ErrorList {
	if backup == nil {
		return nil
	}
	errs := sizeErrors(backup.Storage, path.Child("storage"))
	if backup.Keep != nil && *backup.Keep < 1 {
		errs = append(errs, field.Invalid(path.Child("keep"), *backup.Keep, "keep must be at least 1"))
	}
	return errs
}

func sizeErrors(storage *v1beta1.PostgresStorage, path *field.Path) field.ErrorList {
	if storage == nil || storage.Size == nil || storage.Size.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("size"), storage.Size.String(), "size must be greater than zero")}
}

// namespaceErrors refuses a namespace that is not the configured one, if there is one.
func namespaceErrors(namespace, wanted, who string) field.ErrorList {
	if wanted == "" || namespace == wanted {
		return nil
	}
	detail := fmt.Sprintf("namespace must be %s: %s the namespace of the operator's setting REGISTRIES_NAMESPACE; create it there", wanted, who)
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "namespace"), namespace, detail)}
}

func generatesDatabase(spec *v1beta1.ModelRegistrySpec) bool {
	return spec.Postgres != nil && isTrue(spec.Postgres.GenerateDeployment)
}

// nameErrors refuses names of new registries that would fail later. Those that exist are accepted, whatever they are called.
func nameErrors(registry, old *v1beta1.ModelRegistry) field.ErrorList {
	path := field.NewPath("metadata", "name")
	var errs field.ErrorList
	longest, because := validation.DNS1035LabelMaxLength-len(hostSuffix), "the host of its Route begins with the name and "+hostSuffix
	if generatesDatabase(&registry.Spec) {
		longest, because = validation.DNS1035LabelMaxLength-len(databaseSuffix), "the Service of its database is called by the name and "+databaseSuffix
	}
	length := len(registry.Name)
	grew := old == nil || generatesDatabase(&registry.Spec) && !generatesDatabase(&old.Spec)
	if length > longest && grew {
		errs = append(errs, field.Invalid(path, registry.Name, fmt.Sprintf("must be at most %d characters, because %s; this one has %d", longest, because, length)))
	}
	if old != nil {
		return errs
	}
	if detail := ReservedName(registry.Name); detail != "" {
		errs = append(errs, field.Invalid(path, registry.Name, detail))
	}
	if wrong := validation.IsDNS1035Label(registry.Name); len(wrong) > 0 && length <= longest {
		errs = append(errs, field.Invalid(path, registry.Name, "the Service of the registry bears its name: "+strings.Join(wrong, "; ")))
	}
	return errs
}

// taken refuses the name of a new registry that another one has: Groups, roles and hosts are called by the name alone.
func duplicateNameErrors(registry *v1beta1.ModelRegistry, namespaces []string) field.ErrorList {
	for _, namespace := range namespaces {
		if namespace == registry.Namespace {
			continue // the API server says it better
		}
		err := field.Duplicate(field.NewPath("metadata", "name"), registry.Name)
		err.Detail = fmt.Sprintf("registry named %s already exists in namespace %s: choose another name", registry.Name, namespace)
		return field.ErrorList{err}
	}
	return nil
}

// Objects of a registry bear its name, or begin with it. These names, and names with these beginnings and ends, belong to objects that
// something else in the namespace has or may want: accounts of Kubernetes and OpenShift, other components, other registries.
var (
	reservedNames = []string{
		"default", "builder", "deployer", "pipeline",
		"mlflow", "mlflow-sa", "mlflow-gc", "mlflow-gc-sa", "mlflow-trace-archival", "mlflow-trace-archival-sa",
		"etcd", "modelmesh-serving", "modelmesh-controller",
	}
	reservedPrefixes = []string{names.OperatorName, "modelmesh-serving-", "ray-dashboard-", "rayclient-"}
	reservedSuffixes = []string{"-catalog", databaseSuffix, "-head-svc"}
)

// ReservedName says why a registry should not have a name; empty when it may. Those that exist keep theirs: no foreign object
// is touched for it.
func ReservedName(name string) string {
	begins := func(beginning string) bool { return strings.HasPrefix(name, beginning) }
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	if slices.Contains(reservedNames, name) || slices.ContainsFunc(reservedPrefixes, begins) || slices.ContainsFunc(reservedSuffixes, ends) {
		return fmt.Sprintf("objects called %s belong to something else, or may one day: choose another name", name)
	}
	return ""
}

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
	maxHostLength, maxUserLength, maxDatabaseLength = 253, 128, 64

	hostDetail     = "must be a host name or an IP address, without scheme, port and path"
	userDetail     = "must be at most 128 letters, digits and characters of _ . @ + - and begin with a letter, a digit or _"
	databaseDetail = "must be at most 64 letters, digits and characters of _ . - and begin with a letter, a digit or _"
	// IdentifierDetail says what IsIdentifier demands.
	IdentifierDetail = "must be at most 63 letters, digits and underscores and begin with no digit, to be that of a generated database"
	imageDetail      = "must be an image reference such as registry.example.com/team/name:tag"
)

// text is a value that a user can write, and the rule that it has to follow.
type textField struct {
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
		for _, t := range textFields(&old.Spec) {
			before[t.path.String()] = t.value
		}
	}
	var errs field.ErrorList
	for _, t := range textFields(&registry.Spec) {
		if t.value == "" || t.valid(t.value) || before[t.path.String()] == t.value {
			continue
		}
		errs = append(errs, field.Invalid(t.path, t.value, t.detail))
	}
	return errs
}

func textFields(s *v1beta1.ModelRegistrySpec) []textField {
	spec := field.NewPath("spec")
	all := []textField{{spec.Child("rest", "image"), s.Rest.Image, isImage, imageDetail}}
	if p, path := s.Postgres, spec.Child("postgres"); p != nil {
		user, database := textField{path.Child("username"), p.Username, isUser, userDetail}, textField{path.Child("database"), p.Database, isDatabase, databaseDetail}
		if isTrue(p.GenerateDeployment) {
			user.valid, user.detail, database.valid, database.detail = IsIdentifier, IdentifierDetail, IsIdentifier, IdentifierDetail
		}
		all = append(all, user, database,
			textField{path.Child("host"), p.Host, isHost, hostDetail},
			textField{path.Child("hostAddress"), p.HostAddress, isHost, hostDetail},
			textField{path.Child("image"), p.Image, isImage, imageDetail})
	}
	if m, path := s.MySQL, spec.Child("mysql"); m != nil {
		all = append(all,
			textField{path.Child("host"), m.Host, isHost, hostDetail},
			textField{path.Child("username"), m.Username, isUser, userDetail},
			textField{path.Child("database"), m.Database, isDatabase, databaseDetail})
	}
	for name, proxy := range map[string]*v1beta1.ProxyConfig{"oauthProxy": s.OAuthProxy, "kubeRBACProxy": s.KubeRBACProxy} {
		if proxy != nil {
			all = append(all, textField{spec.Child(name, "image"), proxy.Image, isImage, imageDetail})
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
	return len(value) <= maxHostLength && hostPattern.MatchString(value)
}

func isUser(value string) bool { return len(value) <= maxUserLength && userPattern.MatchString(value) }

func isDatabase(value string) bool {
	return len(value) <= maxDatabaseLength && databasePattern.MatchString(value)
}

// IsIdentifier says whether a generated database can have a user or a database of this name. The controller, which makes it, asks
// too.
func IsIdentifier(value string) bool { return identifierPattern.MatchString(value) }

func isImage(value string) bool { return imagePattern.MatchString(value) }

// warnings names what of a registry has no effect, unless the registry before it had the same.
func warnings(registry, old *v1beta1.ModelRegistry) []string {
	now := ineffective(&registry.Spec)
	if old != nil {
		for path := range ineffective(&old.Spec) {
			delete(now, path)
		}
	}
	texts := lateChanges(&registry.Spec, old)
	if detail := ReservedName(registry.Name); old != nil && detail != "" {
		texts = append(texts, "metadata.name: "+detail+" when you create it again")
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		texts = append(texts, path+": "+now[path])
	}
	return texts
}

// late names changes to a generated database that come too late: its data is there.
func lateChanges(now *v1beta1.ModelRegistrySpec, old *v1beta1.ModelRegistry) []string {
	if old == nil || !generatesDatabase(now) || !generatesDatabase(&old.Spec) {
		return nil
	}
	var texts []string
	before, after := old.Spec.Postgres, now.Postgres
	const fixed = "has no effect on a database that exists, which keeps what it was made with: set it back"
	if before.Username != after.Username {
		texts = append(texts, "spec.postgres.username: "+fixed)
	}
	if before.Database != after.Database {
		texts = append(texts, "spec.postgres.database: "+fixed)
	}
	was, is := storageOf(before), storageOf(after)
	if was.Size != nil && is.Size != nil && is.Size.Cmp(*was.Size) < 0 {
		texts = append(texts, "spec.postgres.storage.size: a claim cannot shrink: set it back")
	}
	if class := ptr.Deref(is.StorageClassName, ""); class != "" && class != ptr.Deref(was.StorageClassName, "") {
		texts = append(texts, "spec.postgres.storage.storageClassName: has no effect on a claim that exists: set it back")
	}
	return texts
}

func storageOf(p *v1beta1.PostgresConfig) v1beta1.PostgresStorage {
	return ptr.Deref(p.Storage, v1beta1.PostgresStorage{})
}

// ineffective returns the fields that have no effect, with the reason.
func ineffective(s *v1beta1.ModelRegistrySpec) map[string]string {
	const ignored = "has no effect: remove it"
	found := map[string]string{}
	note := func(set bool, path, text string) {
		if set {
			found[path] = text
		}
	}
	if g := s.GRPC; g != nil {
		note(g.Port != nil && *g.Port != v1beta1.DefaultGRPCPort, "spec.grpc.port", "has no effect, the server has no gRPC port: remove it")
		note(g.Image != "", "spec.grpc.image", ignored)
		note(g.Resources != nil, "spec.grpc.resources", ignored)
	}
	note(s.EnableDatabaseUpgrade != nil, "spec.enable_database_upgrade", ignored)
	note(s.DowngradeDbSchemaVersion != nil, "spec.downgrade_db_schema_version", ignored)
	note(len(ptr.Deref(s.Rest.Resources, corev1.ResourceRequirements{}).Claims) > 0, "spec.rest.resources.claims", ignored)
	note(s.Postgres != nil && s.MySQL != nil, "spec.mysql", "has no effect beside spec.postgres, which is preferred: remove one of them")
	note(s.Rest.ServiceRoute == v1beta1.RouteEnabled && (s.KubeRBACProxy != nil || s.OAuthProxy != nil), "spec.rest.serviceRoute",
		"the server is reached through its proxy only: the Route of spec.kubeRBACProxy.serviceRoute leads there")
	if s.Postgres != nil {
		ineffectivePostgres(s.Postgres, note)
	}
	if s.MySQL != nil {
		note(isTrue(s.MySQL.SkipDBCreation), "spec.mysql.skipDBCreation", ignored)
	}
	return found
}

func ineffectivePostgres(p *v1beta1.PostgresConfig, note func(bool, string, string)) {
	const ignored = "has no effect: remove it"
	note(isTrue(p.SkipDBCreation), "spec.postgres.skipDBCreation", ignored)
	note(p.SSLPasswordSecret != nil, "spec.postgres.sslPasswordSecret", "has no effect, the server takes keys without a password only: remove it")
	note(p.Host != "" && p.HostAddress != "", "spec.postgres.hostAddress", "has no effect beside spec.postgres.host, which is used: remove one of them")
	if isTrue(p.GenerateDeployment) {
		note(p.PasswordSecret != nil, "spec.postgres.passwordSecret", "has no effect on a generated database, whose password is generated too: remove it")
		return
	}
	const generatedOnly = "has no effect on an existing database: remove it, or set spec.postgres.generateDeployment"
	note(p.Image != "", "spec.postgres.image", generatedOnly)
	note(p.Storage != nil, "spec.postgres.storage", generatedOnly)
	note(p.RetentionPolicy != "", "spec.postgres.retentionPolicy", generatedOnly)
}

func isTrue(value *bool) bool { return value != nil && *value }
