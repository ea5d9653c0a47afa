package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	manifests "github.com/odh-platform/odh-platform-operator/config"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// manifestSet holds the manifests of an installation.
type manifestSet struct {
	// crds are the CRDs by name.
	crds map[string]*apiextensionsv1.CustomResourceDefinition
	// roles are the roles of the manager.
	roles []managerRole
	// configurations maps "kind name" of each webhook configuration to its component.
	configurations map[string]string
	// calls maps "kind name" to "kind path" of each webhook, because installers such as OLM use other names for configurations.
	calls map[string][]string
}

// managerRole is a role of the manager.
type managerRole struct {
	component, name string
	// namespaced roles apply in a single namespace, or can be bound in one.
	namespaced bool
	rules      []rbacv1.PolicyRule
}

// embeddedManifests returns the manifests that this program embeds.
func embeddedManifests() (manifestSet, error) { return readManifests(manifests.Files) }

func readManifests(files fs.FS) (manifestSet, error) {
	s := manifestSet{map[string]*apiextensionsv1.CustomResourceDefinition{}, nil, map[string]string{}, map[string][]string{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		content, err := fs.ReadFile(files, name)
		documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for err == nil {
			var raw json.RawMessage
			if err = documents.Decode(&raw); err == nil && len(raw) > 0 {
				err = s.add(name, raw)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("reading %s: %w", name, err)
	})
	return s, err
}

// managerRoleFiles are the names of the files with roles of the manager. Files with roles for others, such as users, have other names.
var managerRoleFiles = []string{"role.yaml", "leader_election.yaml", "webhook_certificate.yaml", "older_config.yaml"}

// add adds one object. Roles and ClusterRoles, and both kinds of webhook configurations, share the decoded fields.
func (s *manifestSet) add(file string, raw json.RawMessage) error {
	var o struct {
		Kind     string
		Metadata struct{ Name string }
		Rules    []rbacv1.PolicyRule
		Webhooks []admissionregistrationv1.ValidatingWebhook
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	parts, name := strings.Split(file, "/"), o.Kind+" "+o.Metadata.Name
	switch {
	case o.Kind == "CustomResourceDefinition":
		crd := &apiextensionsv1.CustomResourceDefinition{}
		s.crds[o.Metadata.Name] = crd
		return json.Unmarshal(raw, crd)
	case len(o.Rules) > 0 && slices.Contains(managerRoleFiles, path.Base(file)):
		s.roles = append(s.roles, managerRole{parts[1], o.Metadata.Name, o.Kind == "Role" || slices.Contains([]string{"huggingface", "namespaced", "runtimes"}, path.Base(path.Dir(file))), o.Rules})
	case len(o.Webhooks) > 0:
		s.configurations[name] = parts[1]
	}
	for _, w := range o.Webhooks {
		if service := w.ClientConfig.Service; service != nil && service.Path != nil {
			s.calls[name] = append(s.calls[name], o.Kind+" "+*service.Path)
		}
	}
	return nil
}

const installCRDs = "kubectl apply --server-side --force-conflicts -k config/crd, or make install"

func checkCRDs(ctx context.Context, e *checkEnv) (summary string) {
	count := 0
	for _, name := range slices.Sorted(maps.Keys(e.shipped.crds)) {
		u, err := e.Get(ctx, e.Kind("CustomResourceDefinition.apiextensions.k8s.io"), "", name)
		if err != nil {
			continue
		}
		desired, live := e.shipped.crds[name], fetch.Decode[apiextensionsv1.CustomResourceDefinition](u)
		component := kinds.ComponentOf(schema.GroupKind{Group: desired.Spec.Group, Kind: desired.Spec.Names.Kind})
		if live != nil {
			count++
			e.checkCRD(ctx, live, desired)
		} else if component == "" || !e.manager.Known() || e.manager.IsEnabled(component) { // otherwise no component needs it
			e.report(Fail, "CRD "+name, "does not exist", "", installCRDs)
		}
	}
	return fmt.Sprintf("%d CRDs are established and match this release", count)
}

func (e *checkEnv) checkCRD(ctx context.Context, live, desired *apiextensionsv1.CustomResourceDefinition) {
	subject := "CRD " + desired.Name
	if !apihelpers.IsCRDConditionTrue(live, apiextensionsv1.Established) {
		e.report(Fail, subject, "not established", "its resources are not served", "kubectl describe crd "+desired.Name)
	}
	storage := ""
	var missing []string
	for _, v := range desired.Spec.Versions {
		if v.Storage {
			storage = v.Name
		}
		if v.Served && !apihelpers.HasServedCRDVersion(live, v.Name) {
			missing = append(missing, v.Name)
		}
	}
	switch {
	case len(missing) > 0:
		e.report(Fail, subject, "differs from the CRD of this release; not served: "+strings.Join(missing, ", "), "", installCRDs)
	case !equalVersions(live, desired):
		e.report(Warn, subject, "differs from the CRD of this release", "", installCRDs)
	}
	for _, stored := range live.Status.StoredVersions {
		if stored != storage {
			e.report(Warn, subject, "objects may still be stored as "+stored, "a later release that drops the version could not be installed",
				"let the manager migrate them: it needs permissions on the CRD's status, and STORAGE_MIGRATION_* name the versions")
		}
	}
	if c := live.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil {
		client := c.Webhook.ClientConfig
		e.checkClientConfig(ctx, (*admissionregistrationv1.ServiceReference)(client.Service), client.CABundle, Finding{
			Result: Fail, Subject: subject + " (conversion)", Why: "objects that are stored in another version than the requested one cannot be read", Fix: installCRDs,
		})
	}
}

// equalVersions reports whether two CRDs have the same group, scope and versions with their schemas, subresources and columns. It ignores
// names and the conversion.
func equalVersions(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return a.Spec.Group == b.Spec.Group && a.Spec.Scope == b.Spec.Scope && equality.Semantic.DeepEqual(a.Spec.Versions, b.Spec.Versions)
}

func checkCapabilities(ctx context.Context, e *checkEnv) (summary string) {
	if !e.manager.Known() {
		e.report(Unknown, "components", "the enabled components and the kinds that they require are unknown", "",
			"run the command as a user who may read the Deployment of the manager; --manager-namespace names its namespace")
	}
	for _, kind := range capability.Known() {
		served := slices.ContainsFunc(capability.Known(), func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind.GroupKind() && e.Has(k) })
		if other := e.Kind(kind.GroupKind().String()); other.Served() && !served {
			e.report(Warn, kind.Kind+"."+kind.Group, "served as "+other.Version+" and not as "+kind.Version, "the operator treats the kind as not installed",
				"install a release of its operator that serves "+kind.Version)
		}
	}
	fixes := map[string]string{"raycluster": "install KubeRay, or disable the component with ENABLE_RAYCLUSTER=false"}
	for _, c := range kinds.Components() {
		fix := cmp.Or(fixes[c.Name], installCRDs)
		if missing := c.MissingKinds(e.Has); e.manager.IsEnabled(c.Name) && len(missing) > 0 {
			e.report(Warn, "component "+c.Name, "enabled, and waits for "+strings.Join(missing, ", "), "", fix)
		}
	}
	if e.manager.IsEnabled("appwrapper") && !e.Kind(capability.KueueClusterQueue.GroupKind().String()).Served() {
		e.report(Warn, "Kueue", "not installed, and the component appwrapper is enabled",
			"AppWrappers with a queue remain suspended; those without one start immediately",
			"install Kueue with the framework workload.codeflare.dev/appwrapper enabled, if you want quotas")
	}
	if e.manager.IsEnabled("raycluster") && e.Has(capability.Route) && capability.IsPlatformKubeRay(e.GetByName(
		ctx, "MutatingWebhookConfiguration.admissionregistration.k8s.io", "", capability.PlatformKubeRayConfiguration)) {
		e.report(OK, "component raycluster", "does not change RayClusters, because the KubeRay of the platform secures them", "", "")
	}
	return "all kinds that the components require are served"
}

// checkPermissions compares the permissions of the manager's ServiceAccount with the shipped roles. The names of bindings and roles are
// ignored, because installers change them.
func checkPermissions(ctx context.Context, e *checkEnv) (summary string) {
	account := cmp.Or(e.manager.Deployment.Spec.Template.Spec.ServiceAccountName, "default")
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: e.manager.Namespace, Name: account}
	clusterWide := e.grantedRules(ctx, "ClusterRoleBinding", subject)
	inNamespace, checked := append(e.grantedRules(ctx, "RoleBinding", subject), clusterWide...), 0
	for _, role := range e.shipped.roles {
		// The role appwrapper-slack-queue is not checked, because a ConfigMap enables it and no component has its name.
		access := role.component == "mlflowaccess" && e.manager.IsEnabled("mlflow") && e.manager.Settings.MLflow.NamespaceRBAC
		if role.component != "manager" && !e.manager.IsEnabled(role.component) && !access {
			continue
		}
		checked++
		granted := clusterWide
		if role.namespaced {
			granted = inNamespace
		}
		if missing := missingPermissions(granted, role.rules); missing != "" {
			e.report(Fail, "role "+role.name, "ServiceAccount "+account+" cannot "+missing, "",
				"restore the roles and bindings of component "+role.component+": "+e.redeployCommand())
		}
	}
	return fmt.Sprintf("ServiceAccount %s has all permissions of %d roles", account, checked)
}

// missingPermissions lists the first required permissions that are not granted, each with one verb and one resource or path.
func missingPermissions(granted, required []rbacv1.PolicyRule) string {
	const shown = 4
	_, rules := validation.Covers(granted, required)
	var missing []string
	for _, rule := range rules {
		target := strings.Join(rule.NonResourceURLs, "")
		if len(rule.Resources) > 0 {
			name, subresource, _ := strings.Cut(rule.Resources[0], "/")
			target = strings.TrimSuffix(schema.GroupResource{Group: rule.APIGroups[0], Resource: name}.String()+"/"+subresource, "/")
		}
		missing = append(missing, strings.Join(append([]string{rule.Verbs[0], target}, rule.ResourceNames...), " "))
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if more := len(missing) - shown; more > 0 {
		return strings.Join(missing[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(missing, ", ")
}

// grantedRules returns the rules that bindings of a kind grant to an account. Namespaced and cluster-scoped kinds share the decoded fields.
func (e *checkEnv) grantedRules(ctx context.Context, kind string, account rbacv1.Subject) (rules []rbacv1.PolicyRule) {
	bindings, _ := e.List(ctx, e.Kind(kind+"."+rbacv1.GroupName), "", metav1.ListOptions{})
	for i := range bindings {
		b := fetch.Decode[rbacv1.RoleBinding](&bindings[i])
		if !includesAccount(b.Subjects, b.Namespace, account) {
			continue
		}
		if role := fetch.Decode[rbacv1.ClusterRole](e.GetByName(ctx, b.RoleRef.Kind+"."+rbacv1.GroupName, b.Namespace, b.RoleRef.Name)); role != nil {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

// includesAccount reports whether the subjects of a binding include a ServiceAccount, directly or by a group.
func includesAccount(subjects []rbacv1.Subject, bindingNamespace string, account rbacv1.Subject) bool {
	names := []string{
		"system:serviceaccount:" + account.Namespace + ":" + account.Name,
		"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated",
	}
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		if s.Kind == rbacv1.ServiceAccountKind {
			return s.Name == account.Name && cmp.Or(s.Namespace, bindingNamespace) == account.Namespace
		}
		return slices.Contains(names, s.Name)
	})
}
