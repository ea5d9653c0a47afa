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

// shipped is what an installation consists of.
type shipped struct {
	// crds by their names.
	crds map[string]*apiextensionsv1.CustomResourceDefinition
	// roles of the manager.
	roles []shippedRole
	// configurations of webhooks by their names, with the component that has them.
	configurations map[string]string
	// calls are what each configuration calls, as kind and path of a webhook: installers such as OLM give configurations other names.
	calls map[string][]string
}

// shippedRole is a role with the folder that it comes from.
type shippedRole struct {
	component, name string
	// local roles apply, or may be bound, in single namespaces.
	local bool
	rules []rbacv1.PolicyRule
}

// builtIn is what this program was built with.
func embeddedManifests() (shipped, error) { return readShipped(manifests.Files) }

func readShipped(files fs.FS) (shipped, error) {
	s := shipped{map[string]*apiextensionsv1.CustomResourceDefinition{}, nil, map[string]string{}, map[string][]string{}}
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

// managerRoles are the files with the roles of the manager; those with roles for users have other names.
var managerRoles = []string{"role.yaml", "leader_election.yaml", "webhook_certificate.yaml", "older_config.yaml"}

// add sorts in one object. Both kinds of roles have their rules in the same place, and both kinds of configurations their webhooks.
func (s *shipped) add(file string, raw json.RawMessage) error {
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
	case len(o.Rules) > 0 && slices.Contains(managerRoles, path.Base(file)):
		s.roles = append(s.roles, shippedRole{parts[1], o.Metadata.Name, o.Kind == "Role" || len(parts) > 3, o.Rules})
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

func checkCRDs(ctx context.Context, e *checker) (fine string) {
	count := 0
	for _, name := range slices.Sorted(maps.Keys(e.ships.crds)) {
		u, err := e.Get(ctx, e.Kind("CustomResourceDefinition.apiextensions.k8s.io"), "", name)
		if err != nil {
			continue
		}
		count++
		wanted, live := e.ships.crds[name], fetch.Decode[apiextensionsv1.CustomResourceDefinition](u)
		component := kinds.ComponentOf(schema.GroupKind{Group: wanted.Spec.Group, Kind: wanted.Spec.Names.Kind})
		if live != nil {
			e.checkCRD(ctx, live, wanted)
		} else if component == "" || !e.manager.Known() || e.manager.IsEnabled(component) { // else it is not needed
			e.report(Fail, "CRD "+name, "does not exist", "", installCRDs)
		}
	}
	return fmt.Sprintf("%d CRDs are established, as this release has them", count)
}

func (e *checker) checkCRD(ctx context.Context, live, wanted *apiextensionsv1.CustomResourceDefinition) {
	subject := "CRD " + wanted.Name
	if !apihelpers.IsCRDConditionTrue(live, apiextensionsv1.Established) {
		e.report(Fail, subject, "not established", "its resources cannot be reached", "kubectl describe crd "+wanted.Name)
	}
	storage := ""
	var missing []string
	for _, v := range wanted.Spec.Versions {
		if v.Storage {
			storage = v.Name
		}
		if v.Served && !apihelpers.HasServedCRDVersion(live, v.Name) {
			missing = append(missing, v.Name)
		}
	}
	switch {
	case len(missing) > 0:
		e.report(Fail, subject, "differs from the one of this release; not served: "+strings.Join(missing, ", "), "", installCRDs)
	case !equalVersions(live, wanted):
		e.report(Warn, subject, "differs from the one of this release", "", installCRDs)
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

// same reports whether two CRDs declare the same versions: schemas, subresources, columns, which is served and which is stored. What an
// API server fills in, and where conversion goes, counts for nothing.
func equalVersions(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return a.Spec.Group == b.Spec.Group && a.Spec.Scope == b.Spec.Scope && equality.Semantic.DeepEqual(a.Spec.Versions, b.Spec.Versions)
}

func checkCapabilities(ctx context.Context, e *checker) (fine string) {
	if !e.manager.Known() {
		e.report(Unknown, "components", "it is not known which of them are on and what they need", "",
			"run this as a user who may read the Deployment of the manager; --manager-namespace names its namespace")
	}
	for _, kind := range capability.Known() {
		served := slices.ContainsFunc(capability.Known(), func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind.GroupKind() && e.Has(k) })
		if other := e.Kind(kind.GroupKind().String()); other.Served() && !served {
			e.report(Warn, kind.Kind+"."+kind.Group, "served as "+other.Version+" and not as "+kind.Version, "it counts as not installed",
				"install a release of its operator that serves "+kind.Version)
		}
	}
	fixes := map[string]string{"raycluster": "install KubeRay, or switch the component off with ENABLE_RAYCLUSTER=false"}
	for _, c := range kinds.Components() {
		fix := cmp.Or(fixes[c.Name], installCRDs)
		if missing := c.MissingKinds(e.Has); e.manager.IsEnabled(c.Name) && len(missing) > 0 {
			e.report(Warn, "component "+c.Name, "on, and waits for "+strings.Join(missing, ", "), "", fix)
		}
	}
	if e.manager.IsEnabled("appwrapper") && !e.Kind(capability.KueueWorkload.GroupKind().String()).Served() {
		e.report(Warn, "Kueue", "not installed, and the component appwrapper is on",
			"AppWrappers with a queue stay suspended; those without one start at once",
			"install Kueue with the framework workload.codeflare.dev/appwrapper enabled, if you want quotas")
	}
	if e.manager.IsEnabled("raycluster") && e.Has(capability.Route) && capability.IsPlatformKubeRay(e.GetByName(
		ctx, "MutatingWebhookConfiguration.admissionregistration.k8s.io", "", capability.PlatformKubeRayConfiguration)) {
		e.report(OK, "component raycluster", "it adds nothing to Ray clusters: the KubeRay of the platform secures them", "", "")
	}
	return "everything that the components need is served"
}

// checkRights compares what the manager's account may do with the roles that come with it. Bindings count by what they allow, not by
// their names: installers give them others.
func checkRights(ctx context.Context, e *checker) (fine string) {
	account := cmp.Or(e.manager.Deployment.Spec.Template.Spec.ServiceAccountName, "default")
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: e.manager.Namespace, Name: account}
	everywhere := e.grantedRules(ctx, "ClusterRoleBinding", subject)
	inside, checked := append(e.grantedRules(ctx, "RoleBinding", subject), everywhere...), 0
	for _, role := range e.ships.roles {
		// appwrapper-slack-queue, which a ConfigMap asks for, is no component.
		access := role.component == "mlflowaccess" && e.manager.IsEnabled("mlflow") && e.manager.Settings.MLflow.NamespaceRBAC
		if role.component != "manager" && !e.manager.IsEnabled(role.component) && !access {
			continue
		}
		checked++
		granted := everywhere
		if role.local {
			granted = inside
		}
		if missing := missingRights(granted, role.rules); missing != "" {
			e.report(Fail, "role "+role.name, "account "+account+" may not "+missing, "",
				"restore the roles and bindings of component "+role.component+": "+e.redeployCommand())
		}
	}
	return fmt.Sprintf("account %s has all permissions of %d roles", account, checked)
}

// withheld are permissions of a role that an account does not have, one verb and one resource or path at a time.
func missingRights(granted, wanted []rbacv1.PolicyRule) string {
	const shown = 4
	_, rules := validation.Covers(granted, wanted)
	var missing []string
	for _, rule := range rules {
		what := strings.Join(rule.NonResourceURLs, "")
		if len(rule.Resources) > 0 {
			name, part, _ := strings.Cut(rule.Resources[0], "/")
			what = strings.TrimSuffix(schema.GroupResource{Group: rule.APIGroups[0], Resource: name}.String()+"/"+part, "/")
		}
		missing = append(missing, strings.Join(append([]string{rule.Verbs[0], what}, rule.ResourceNames...), " "))
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	if more := len(missing) - shown; more > 0 {
		return strings.Join(missing[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(missing, ", ")
}

// granted are the rules that bindings of a kind grant to an account. Bindings and roles of both kinds have the same fields.
func (e *checker) grantedRules(ctx context.Context, kind string, account rbacv1.Subject) (rules []rbacv1.PolicyRule) {
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

// concerns reports whether an account is among the subjects of a binding, by itself or by a group of all accounts of its namespace.
func includesAccount(subjects []rbacv1.Subject, home string, account rbacv1.Subject) bool {
	names := []string{
		"system:serviceaccount:" + account.Namespace + ":" + account.Name,
		"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated",
	}
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		if s.Kind == rbacv1.ServiceAccountKind {
			return s.Name == account.Name && cmp.Or(s.Namespace, home) == account.Namespace
		}
		return slices.Contains(names, s.Name)
	})
}
