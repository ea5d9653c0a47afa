package modelregistry

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// warnings names what of a registry has no effect, unless the registry before it had the same.
func warnings(registry, old *v1beta1.ModelRegistry) []string {
	now := ineffective(&registry.Spec)
	if old != nil {
		for path := range ineffective(&old.Spec) {
			delete(now, path)
		}
	}
	texts := late(&registry.Spec, old)
	if detail := ReservedName(registry.Name); old != nil && detail != "" {
		texts = append(texts, "metadata.name: "+detail+" when you create it again")
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		texts = append(texts, path+": "+now[path])
	}
	return texts
}

// late names changes to a generated database that come too late: its data is there.
func late(now *v1beta1.ModelRegistrySpec, old *v1beta1.ModelRegistry) []string {
	if old == nil || !generated(now) || !generated(&old.Spec) {
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
	if size := sizeOf(after); size != nil && sizeOf(before) != nil && size.Cmp(*sizeOf(before)) < 0 {
		texts = append(texts, "spec.postgres.storage.size: a claim cannot shrink: set it back")
	}
	if class := classOf(after); class != "" && class != classOf(before) {
		texts = append(texts, "spec.postgres.storage.storageClassName: has no effect on a claim that exists: set it back")
	}
	return texts
}

func sizeOf(p *v1beta1.PostgresConfig) *resource.Quantity {
	if p.Storage == nil {
		return nil
	}
	return p.Storage.Size
}

func classOf(p *v1beta1.PostgresConfig) string {
	if p.Storage == nil || p.Storage.StorageClassName == nil {
		return ""
	}
	return *p.Storage.StorageClassName
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
	note(hasClaims(s.Rest.Resources), "spec.rest.resources.claims", ignored)
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

func hasClaims(resources *corev1.ResourceRequirements) bool {
	return resources != nil && len(resources.Claims) > 0
}

func isTrue(value *bool) bool { return value != nil && *value }
