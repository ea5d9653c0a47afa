package modelregistry

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	if generated(&registry.Spec) {
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
	described := generated(&registry.Spec) || postgres.Host+postgres.HostAddress+postgres.Username+postgres.Database != "" || postgres.PasswordSecret != nil
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

func generated(spec *v1beta1.ModelRegistrySpec) bool {
	return spec.Postgres != nil && isTrue(spec.Postgres.GenerateDeployment)
}

// nameErrors refuses names of new registries that would fail later. Those that exist are accepted, whatever they are called.
func nameErrors(registry, old *v1beta1.ModelRegistry) field.ErrorList {
	path := field.NewPath("metadata", "name")
	var errs field.ErrorList
	longest, because := validation.DNS1035LabelMaxLength-len(hostSuffix), "the host of its Route begins with the name and "+hostSuffix
	if generated(&registry.Spec) {
		longest, because = validation.DNS1035LabelMaxLength-len(databaseSuffix), "the Service of its database is called by the name and "+databaseSuffix
	}
	length := len(registry.Name)
	grew := old == nil || generated(&registry.Spec) && !generated(&old.Spec)
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
func taken(registry *v1beta1.ModelRegistry, namespaces []string) field.ErrorList {
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
	reservedBeginnings = []string{names.OperatorName, "modelmesh-serving-"}
	reservedEnds       = []string{"-catalog", databaseSuffix, "-head-svc"}
)

// ReservedName says why a registry should not have a name; empty when it may. Those that exist keep theirs: no foreign object
// is touched for it.
func ReservedName(name string) string {
	begins := func(beginning string) bool { return strings.HasPrefix(name, beginning) }
	ends := func(end string) bool { return strings.HasSuffix(name, end) }
	if slices.Contains(reservedNames, name) || slices.ContainsFunc(reservedBeginnings, begins) || slices.ContainsFunc(reservedEnds, ends) {
		return fmt.Sprintf("objects called %s belong to something else, or may one day: choose another name", name)
	}
	return ""
}
