package modelregistry

import (
	"cmp"
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
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Suffixes of names derived from that of a registry.
const (
	hostSuffix     = "-rest"     // of the first label of the host of its Route
	databaseSuffix = "-postgres" // of the Service and a label of a generated database
)

const noDatabase = "required one of `postgres` or `mysql` database: set spec.postgres.generateDeployment to true for a database that the " +
	"operator runs, or name an existing one in spec.postgres.host or spec.mysql.host"

// Validate returns the errors of a registry that do not depend on the old object or the cluster. The controller calls it too.
func Validate(registry *v1beta1.ModelRegistry, s Settings) field.ErrorList {
	errs := namespaceErrors(registry.Namespace, s.Namespace, "registries must be in")
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
		if host := cmp.Or(postgres.Host, postgres.HostAddress); host != "" {
			errs = append(errs, field.Invalid(path.Child("host"), host, detail))
		}
	}
	// Only the schema of v1beta1 has this enum.
	policies := []v1beta1.RetentionPolicy{v1beta1.RetainData, v1beta1.DeleteData}
	if postgres.RetentionPolicy != "" && !slices.Contains(policies, postgres.RetentionPolicy) {
		errs = append(errs, field.NotSupported(path.Child("retentionPolicy"), postgres.RetentionPolicy, policies))
	}
	errs = append(errs, sizeErrors(postgres.Storage, path.Child("storage"))...)
	errs = append(errs, backupErrors(postgres.Backup, path.Child("backup"))...)
	hasOtherConnection := generatesDatabase(&registry.Spec) || postgres.Host+postgres.HostAddress+postgres.Username+postgres.Database != "" || postgres.PasswordSecret != nil
	if hasOtherConnection && postgres.ConnectionSecretName != "" {
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

// namespaceErrors rejects namespaces other than the configured one, if any.
func namespaceErrors(namespace, configured, subject string) field.ErrorList {
	if configured == "" || namespace == configured {
		return nil
	}
	detail := fmt.Sprintf("namespace must be %s: %s the namespace that REGISTRIES_NAMESPACE, or spec.instancesNamespace of the AIHub, names; create it there", configured, subject)
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "namespace"), namespace, detail)}
}

func generatesDatabase(spec *v1beta1.ModelRegistrySpec) bool {
	return spec.Postgres != nil && isTrue(spec.Postgres.GenerateDeployment)
}

// nameErrors rejects names of new registries that would fail later, and long names of registries that get a generated database.
func nameErrors(registry, old *v1beta1.ModelRegistry) field.ErrorList {
	path := field.NewPath("metadata", "name")
	var errs field.ErrorList
	maxLength, reason := validation.DNS1035LabelMaxLength-len(hostSuffix), "the host of its Route begins with the name and "+hostSuffix
	if generatesDatabase(&registry.Spec) {
		maxLength, reason = validation.DNS1035LabelMaxLength-len(databaseSuffix), "the Service of its database has the same name with the suffix "+databaseSuffix
	}
	length := len(registry.Name)
	mustFit := old == nil || generatesDatabase(&registry.Spec) && !generatesDatabase(&old.Spec)
	if length > maxLength && mustFit {
		errs = append(errs, field.Invalid(path, registry.Name, fmt.Sprintf("must be at most %d characters, because %s; this one has %d", maxLength, reason, length)))
	}
	if old != nil {
		return errs
	}
	if detail := ReservedNameProblem(registry.Name); detail != "" {
		errs = append(errs, field.Invalid(path, registry.Name, detail))
	}
	if problems := validation.IsDNS1035Label(registry.Name); len(problems) > 0 && length <= maxLength {
		errs = append(errs, field.Invalid(path, registry.Name, "the Service of the registry has the same name: "+strings.Join(problems, "; ")))
	}
	return errs
}

// duplicateNameErrors rejects the name of a registry in another namespace: names of Groups, cluster-scoped RBAC and hosts do not contain
// the namespace.
func duplicateNameErrors(registry *v1beta1.ModelRegistry, namespaces []string) field.ErrorList {
	for _, namespace := range namespaces {
		if namespace == registry.Namespace {
			continue // the API server returns AlreadyExists
		}
		err := field.Duplicate(field.NewPath("metadata", "name"), registry.Name)
		err.Detail = fmt.Sprintf("registry named %s already exists in namespace %s: choose another name", registry.Name, namespace)
		return field.ErrorList{err}
	}
	return nil
}

// Names, prefixes and suffixes of other objects in the namespace: ServiceAccounts of Kubernetes and OpenShift, and objects of other
// components and registries. Names of objects of a registry begin with its name.
var (
	reservedNames = []string{
		"default", "builder", "deployer", "pipeline",
		"mlflow", "mlflow-sa", "mlflow-gc", "mlflow-gc-sa", "mlflow-trace-archival", "mlflow-trace-archival-sa",
		"etcd", "modelmesh-serving", "modelmesh-controller",
	}
	reservedPrefixes = []string{names.OperatorName, "modelmesh-serving-", "ray-dashboard-", "rayclient-"}
	reservedSuffixes = []string{"-catalog", databaseSuffix, "-head-svc"}
)

// ReservedNameProblem returns the error for a name that is reserved for other objects, or "". Existing registries keep their names.
func ReservedNameProblem(name string) string {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	hasSuffix := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	if slices.Contains(reservedNames, name) || slices.ContainsFunc(reservedPrefixes, hasPrefix) || slices.ContainsFunc(reservedSuffixes, hasSuffix) {
		return fmt.Sprintf("the name %s is reserved for other objects: choose another name", name)
	}
	return ""
}

// Patterns of values that are inserted into connection strings or manifests. They allow no value that changes the structure.
var (
	hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?$`)
	userPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
	// identifierPattern matches the names of users and databases that the image of a generated database accepts.
	identifierPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	databasePattern   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

const (
	maxHostLength     = 253
	maxUserLength     = 128
	maxDatabaseLength = 64

	hostDetail     = "must be a host name or an IP address, without scheme, port and path"
	userDetail     = "must be at most 128 letters, digits and characters of _ . @ + - and begin with a letter, a digit or _"
	databaseDetail = "must be at most 64 letters, digits and characters of _ . - and begin with a letter, a digit or _"
	// IdentifierDetail describes names accepted by IsIdentifier.
	IdentifierDetail = "must be at most 63 letters, digits and underscores, and must not begin with a digit, because a generated database does not accept other names"
	imageDetail      = "must be an image reference such as registry.example.com/team/name:tag"
)

// textField is a string field of the spec and its rule.
type textField struct {
	path   *field.Path
	value  string
	valid  func(string) bool
	detail string
}

// patternErrors rejects invalid values, unless the old object has the same value, so that existing registries remain editable.
func patternErrors(registry, old *v1beta1.ModelRegistry) field.ErrorList {
	oldValues := map[string]string{}
	if old != nil {
		for _, t := range textFields(&old.Spec) {
			oldValues[t.path.String()] = t.value
		}
	}
	var errs field.ErrorList
	for _, t := range textFields(&registry.Spec) {
		if t.value == "" || t.valid(t.value) || oldValues[t.path.String()] == t.value {
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
		return address.Zone() == "" // a zone is the name of a network interface of a node
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

// IsIdentifier reports whether a generated database accepts a user or database of this name.
func IsIdentifier(value string) bool { return identifierPattern.MatchString(value) }

func isImage(value string) bool { return imagePattern.MatchString(value) }

// warnings returns warnings about changes and new fields without effect, and about the reserved name of an existing registry.
func warnings(registry, old *v1beta1.ModelRegistry) []string {
	current := ineffectiveFields(&registry.Spec)
	if old != nil {
		for path := range ineffectiveFields(&old.Spec) {
			delete(current, path)
		}
	}
	texts := ignoredChanges(&registry.Spec, old)
	if detail := ReservedNameProblem(registry.Name); old != nil && detail != "" {
		texts = append(texts, "metadata.name: "+detail+" when you create it again")
	}
	for _, path := range slices.Sorted(maps.Keys(current)) {
		texts = append(texts, path+": "+current[path])
	}
	return texts
}

// ignoredChanges returns warnings about changes without effect on a generated database, whose data exists.
func ignoredChanges(current *v1beta1.ModelRegistrySpec, old *v1beta1.ModelRegistry) []string {
	if old == nil || !generatesDatabase(current) || !generatesDatabase(&old.Spec) {
		return nil
	}
	var texts []string
	oldPostgres, newPostgres := old.Spec.Postgres, current.Postgres
	const fixed = "has no effect on the generated database, which keeps its original value: restore the previous value"
	if oldPostgres.Username != newPostgres.Username {
		texts = append(texts, "spec.postgres.username: "+fixed)
	}
	if oldPostgres.Database != newPostgres.Database {
		texts = append(texts, "spec.postgres.database: "+fixed)
	}
	oldStorage, newStorage := storageOf(oldPostgres), storageOf(newPostgres)
	if oldStorage.Size != nil && newStorage.Size != nil && newStorage.Size.Cmp(*oldStorage.Size) < 0 {
		texts = append(texts, "spec.postgres.storage.size: a claim cannot shrink: restore the previous value")
	}
	if class := ptr.Deref(newStorage.StorageClassName, ""); class != "" && class != ptr.Deref(oldStorage.StorageClassName, "") {
		texts = append(texts, "spec.postgres.storage.storageClassName: has no effect on an existing claim: restore the previous value")
	}
	return texts
}

func storageOf(p *v1beta1.PostgresConfig) v1beta1.PostgresStorage {
	return ptr.Deref(p.Storage, v1beta1.PostgresStorage{})
}

// ineffectiveFields returns warnings about fields without effect, and about a Route that only leads to the proxy, by field.
func ineffectiveFields(s *v1beta1.ModelRegistrySpec) map[string]string {
	const ignored = "has no effect: remove it"
	found := map[string]string{}
	addIf := func(set bool, path, text string) {
		if set {
			found[path] = text
		}
	}
	if g := s.GRPC; g != nil {
		addIf(g.Port != nil && *g.Port != v1beta1.DefaultGRPCPort, "spec.grpc.port", "has no effect, the server has no gRPC port: remove it")
		addIf(g.Image != "", "spec.grpc.image", ignored)
		addIf(g.Resources != nil, "spec.grpc.resources", ignored)
	}
	addIf(s.EnableDatabaseUpgrade != nil, "spec.enable_database_upgrade", ignored)
	addIf(s.DowngradeDbSchemaVersion != nil, "spec.downgrade_db_schema_version", ignored)
	addIf(len(ptr.Deref(s.Rest.Resources, corev1.ResourceRequirements{}).Claims) > 0, "spec.rest.resources.claims", ignored)
	addIf(s.Postgres != nil && s.MySQL != nil, "spec.mysql", "has no effect together with spec.postgres, which takes precedence: remove one of them")
	addIf(s.Rest.ServiceRoute == v1beta1.RouteEnabled && (s.KubeRBACProxy != nil || s.OAuthProxy != nil), "spec.rest.serviceRoute",
		"clients can reach the server only through its proxy: use the Route of spec.kubeRBACProxy.serviceRoute")
	if s.Postgres != nil {
		ineffectivePostgres(s.Postgres, addIf)
	}
	if s.MySQL != nil {
		addIf(isTrue(s.MySQL.SkipDBCreation), "spec.mysql.skipDBCreation", ignored)
	}
	return found
}

func ineffectivePostgres(p *v1beta1.PostgresConfig, addIf func(bool, string, string)) {
	const ignored = "has no effect: remove it"
	addIf(isTrue(p.SkipDBCreation), "spec.postgres.skipDBCreation", ignored)
	addIf(p.SSLPasswordSecret != nil, "spec.postgres.sslPasswordSecret", "has no effect, the server accepts only keys without a password: remove it")
	addIf(p.Host != "" && p.HostAddress != "", "spec.postgres.hostAddress", "has no effect together with spec.postgres.host, which takes precedence: remove one of them")
	hasPort := p.Port != nil && *p.Port != v1beta1.DefaultPostgresPort
	if isTrue(p.GenerateDeployment) {
		const ownTLS = "has no effect on a generated database: remove it, and set spec.postgres.serverTLS to Enabled to encrypt its connections"
		addIf(p.PasswordSecret != nil, "spec.postgres.passwordSecret", "has no effect on a generated database, whose password is generated too: remove it")
		addIf(hasPort, "spec.postgres.port", "has no effect on a generated database, whose port is fixed: remove it")
		addIf(p.SSLMode != "" && p.SSLMode != "disable", "spec.postgres.sslMode", ownTLS)
		addIf(p.SSLCertificateSecret != nil, "spec.postgres.sslCertificateSecret", ownTLS)
		addIf(p.SSLKeySecret != nil, "spec.postgres.sslKeySecret", ownTLS)
		addIf(p.SSLRootCertificateConfigMap != nil, "spec.postgres.sslRootCertificateConfigMap", ownTLS)
		addIf(p.SSLRootCertificateSecret != nil, "spec.postgres.sslRootCertificateSecret", ownTLS)
		return
	}
	addIf(hasPort && p.ConnectionSecretName != "", "spec.postgres.port",
		"has no effect together with spec.postgres.connectionSecretName, whose Secret contains the port: remove it")
	const generatedOnly = "has no effect without a generated database: remove it, or set spec.postgres.generateDeployment"
	addIf(p.Image != "", "spec.postgres.image", generatedOnly)
	addIf(p.Storage != nil, "spec.postgres.storage", generatedOnly)
	addIf(p.RetentionPolicy != "", "spec.postgres.retentionPolicy", generatedOnly)
	addIf(p.Backup != nil, "spec.postgres.backup", generatedOnly)
	addIf(p.Resources != nil, "spec.postgres.resources", generatedOnly)
	addIf(p.ServerTLS == server.Enabled, "spec.postgres.serverTLS", generatedOnly)
	addIf(p.MajorVersion != nil, "spec.postgres.majorVersion", generatedOnly)
}

func isTrue(value *bool) bool { return value != nil && *value }
