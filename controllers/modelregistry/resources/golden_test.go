package resources

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// TestGolden compares every object of every case with a golden file.
func TestGolden(t *testing.T) {
	described := registrytest.Registry(registrytest.AddProxy)
	described.Annotations = map[string]string{servers.AnnotationDisplayName: "Team A", servers.AnnotationDescription: "Models of team A", "example.com/note": "not ours"}
	whole := registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.SetAllDatabaseFields)
	ownCert := func(in Inputs) Inputs { return with(in, func(in *Inputs) { in.RequestCertificate = false }) }
	for name, test := range map[string]struct {
		m  *v1beta1.ModelRegistry
		in Inputs
	}{
		"postgres-plain":         {registrytest.Registry(), plain},
		"postgres-tls-plain":     {registrytest.Registry(registrytest.PostgresTLS), plain},
		"postgres-tls-openshift": {registrytest.Registry(registrytest.PostgresTLS, registrytest.AddProxy), openshift},
		"postgres-configmap-plain": {registrytest.Registry(registrytest.PostgresTLS, func(s *v1beta1.ModelRegistrySpec) {
			s.Postgres.SSLRootCertificateConfigMap = registrytest.ConfigMap("pg-root-map", "ca.pem")
		}), plain},
		"mysql-plain":                 {registrytest.Registry(registrytest.MySQL), plain},
		"mysql-tls-openshift":         {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS, registrytest.AddProxy), openshift},
		"mysql-configmaps-plain":      {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS, registrytest.MySQLConfigMaps), plain},
		"proxy-plain":                 {registrytest.Registry(registrytest.AddProxy), plain},
		"proxy-own-certificate-plain": {registrytest.Registry(registrytest.AddProxy, registrytest.CustomizeProxy), ownCert(plain)},
		"proxy-own-certificate-ocp":   {registrytest.Registry(registrytest.AddProxy, registrytest.CustomizeProxy), ownCert(openshift)},
		"proxy-unrouted-openshift":    {registrytest.Registry(registrytest.AddProxy, registrytest.DisableRoute), openshift},
		"described-openshift":         {described, openshift},
		"everywhere-openshift":        {registrytest.Registry(registrytest.AddProxy, registrytest.SetOptionalFields), openshift},
		"gateway-openshift":           {registrytest.Registry(registrytest.AddProxy), gateway},
		"identity-provider-openshift": {registrytest.Registry(registrytest.AddProxy), with(openshift, func(in *Inputs) { unserve(in, capability.UserGroup) })},
		"generated-plain":             {registrytest.Registry(registrytest.UseGeneratedDatabase), plain},
		"generated-openshift":         {registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.AddProxy, registrytest.SetStorageAndRetention), openshift},
		"placed-plain": {registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) {
			s.Pods, s.Postgres.Backup = registrytest.Placed(), &v1beta1.PostgresBackup{Schedule: "@daily"}
		}), plain},
		"generated-whole-plain":     {whole, plain},
		"generated-whole-openshift": {whole, openshift},
		"connection-plain": {registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) {
			s.Postgres = &v1beta1.PostgresConfig{
				ConnectionSecretName: "models-app", SSLMode: "verify-full", SSLRootCertificateSecret: registrytest.Secret("models-ca", "ca.crt"),
			}
		}), plain},
		"long-name-openshift": {registrytest.SetName(registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.AddProxy), strings.Repeat("a", 60)+"xyz"), gateway},
		"stamped-plain": {registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.AddProxy), with(plain, func(in *Inputs) {
			in.ServerHash = reference.RolloutHash{Hashes: `{"Secret/team-a-postgres-credentials":"1"}`, Rollout: "a1"}
			in.DatabaseHash = reference.RolloutHash{Hashes: `{"Secret/team-a-postgres-credentials":"2"}`, Rollout: "b2"}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			objects := buildObjects(t, test.m, test.in)
			if p := test.m.Spec.Postgres; p != nil && p.Host == "team-a-postgres" {
				objects = append(objects, buildDatabaseObjects(t, test.m, test.in)...)
				if p.Backup != nil {
					objects = append(objects, renderObjects(t, test.m, append(apply.Desired{BackupClaim(test.m)}, BuildBackup(test.m, test.in)...))...)
				}
			}
			framework.Golden(t, filepath.Join("testdata", "golden", name+".yaml"), objects)
			checkPods(t, objects)
		})
	}
}

// checkPods requires that the pods of Deployments meet the restricted Pod Security Standard and have a token only for a proxy. [S7]
func checkPods(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		pod := podOf(t, objects, o.GetName())
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pod is not restricted: %+v", o.GetName(), s)
		}
		for i := range pod.Containers {
			c := &pod.Containers[i]
			if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: container %s is not restricted: %+v", o.GetName(), c.Name, s)
			}
		}
		hasProxy := len(pod.Containers) > 1
		if token := pod.AutomountServiceAccountToken; token == nil || *token != hasProxy {
			t.Errorf("%s: got automountServiceAccountToken %v, want %t", o.GetName(), token, hasProxy)
		}
	}
}
