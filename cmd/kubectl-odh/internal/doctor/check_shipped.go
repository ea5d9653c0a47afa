package doctor

import (
	"bytes"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	shipped "github.com/odh-platform/odh-platform-operator/config"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

const installCRDs = "kubectl apply --server-side --force-conflicts -k config/crd, or make install"

func checkCRDs(f *Facts, ships Shipped) (problems []Finding, fine string) {
	for _, name := range slices.Sorted(maps.Keys(ships.CRDs)) {
		problems = append(problems, judgeCRD(f, ships.CRDs[name])...)
	}
	return problems, fmt.Sprintf("%d CRDs are established, as this release has them", len(f.CRDs))
}

func judgeCRD(f *Facts, wanted *apiextensionsv1.CustomResourceDefinition) []Finding {
	subject := "CRD " + wanted.Name
	live, known := f.CRDs[wanted.Name]
	component := kinds.ComponentOf(schema.GroupKind{Group: wanted.Spec.Group, Kind: wanted.Spec.Names.Kind})
	switch {
	case !known, live == nil && component != "" && f.off(component): // so it is not needed
		return nil
	case live == nil:
		return []Finding{{Result: Fail, Subject: subject, Found: "does not exist", Fix: installCRDs}}
	}
	var out []Finding
	if !apihelpers.IsCRDConditionTrue(live, apiextensionsv1.Established) {
		out = append(out, Finding{Result: Fail, Subject: subject, Found: "not established", Why: "its resources cannot be reached", Fix: "kubectl describe crd " + wanted.Name})
	}
	if !same(live, wanted) {
		finding := Finding{Result: Warn, Subject: subject, Found: "differs from the one of this release", Fix: installCRDs}
		if missing := versionsMissing(live, wanted); len(missing) > 0 {
			finding.Result, finding.Found = Fail, finding.Found+"; not served: "+strings.Join(missing, ", ")
		}
		out = append(out, finding)
	}
	for _, stored := range live.Status.StoredVersions {
		if !slices.ContainsFunc(wanted.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored && v.Storage }) {
			out = append(out, Finding{Result: Warn, Subject: subject, Found: "objects may still be stored as " + stored, Why: "a later release that drops the version could not be installed",
				Fix: "let the manager migrate them: it needs permissions on the CRD's status, and STORAGE_MIGRATION_* name the versions"})
		}
	}
	return append(out, judgeConversion(f, live, subject)...)
}

// versionsMissing are the versions that are not served and should be.
func versionsMissing(live, wanted *apiextensionsv1.CustomResourceDefinition) []string {
	var missing []string
	for _, v := range wanted.Spec.Versions {
		if v.Served && !apihelpers.HasServedCRDVersion(live, v.Name) {
			missing = append(missing, v.Name)
		}
	}
	return missing
}

func checkCapabilities(f *Facts, _ Shipped) (problems []Finding, fine string) {
	if !f.Manager.Settings.Known {
		problems = append(problems, Finding{Result: Unknown, Subject: "components", Found: "it is not known which of them are on and what they need",
			Fix: "run this as a user who may read the Deployment of the manager; --manager-namespace names its namespace"})
	}
	for _, kind := range capability.Known() {
		served := slices.ContainsFunc(capability.Known(), func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind.GroupKind() && f.Served.Has(k) })
		if other := f.Served.Kind(kind.GroupKind().String()); other.Served() && !served {
			problems = append(problems, Finding{Result: Warn, Subject: kind.Kind + "." + kind.Group, Found: "served as " + other.Version + " and not as " + kind.Version,
				Why: "it counts as not installed", Fix: "install a release of its operator that serves " + kind.Version})
		}
	}
	for _, c := range kinds.Components() {
		missing := c.Missing(f.Served.Has)
		if !f.enabled(c.Name) || len(missing) == 0 {
			continue
		}
		fix := installCRDs
		if c.Name == "raycluster" {
			fix = "install KubeRay, or switch the component off with ENABLE_RAYCLUSTER=false"
		}
		problems = append(problems, Finding{Result: Warn, Subject: "component " + c.Name, Found: "on, and waits for " + strings.Join(missing, ", "), Fix: fix})
	}
	return append(problems, checkNeighbors(f)...), "everything that the components need is served"
}

// checkNeighbors reports what other operators mean for components that are on.
func checkNeighbors(f *Facts) (problems []Finding) {
	if f.enabled("appwrapper") && !f.Served.Kind(capability.KueueWorkload.GroupKind().String()).Served() {
		problems = append(problems, Finding{Result: Warn, Subject: "Kueue", Found: "not installed, and the component appwrapper is on",
			Why: "AppWrappers with a queue stay suspended; those without one start at once", Fix: "install Kueue with the framework workload.codeflare.dev/appwrapper enabled, if you want quotas"})
	}
	if f.enabled("raycluster") && f.PlatformKubeRay && f.Served.Has(capability.Route) {
		problems = append(problems, Finding{Result: OK, Subject: "component raycluster", Found: "it adds nothing to Ray clusters: the KubeRay of the platform secures them"})
	}
	return problems
}

// Shipped is what an installation consists of.
type Shipped struct {
	// CRDs by their names.
	CRDs map[string]*apiextensionsv1.CustomResourceDefinition
	// Roles of the manager.
	Roles []ShippedRole
	// Configurations of webhooks by their names, with the component that has them.
	Configurations map[string]string
	// Calls are what each configuration calls, as kind and path of a webhook: installers such as OLM give configurations other names.
	Calls map[string][]string
}

// ShippedRole is a role with the folder that it comes from.
type ShippedRole struct {
	Component, Name string
	// Inside tells that it applies in the namespace of the manager only.
	Inside bool
	// Narrowed tells that an installation may bind it in single namespaces.
	Narrowed bool
	Rules    []rbacv1.PolicyRule
}

// readShipped reads what is built in.
func readShipped(files fs.FS) (Shipped, error) {
	s := Shipped{CRDs: map[string]*apiextensionsv1.CustomResourceDefinition{}, Configurations: map[string]string{}, Calls: map[string][]string{}}
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

// builtIn is what this program was built with.
func builtIn() (Shipped, error) { return readShipped(shipped.Files) }

// managerRoles are the files with the roles of the manager; those with roles for users have other names.
var managerRoles = []string{"role.yaml", "leader_election.yaml", "webhook_certificate.yaml", "older_config.yaml"}

// add sorts in one object. Both kinds of roles have their rules in the same place, and both kinds of configurations their webhooks.
func (s *Shipped) add(file string, raw json.RawMessage) error {
	var o struct {
		Kind     string
		Metadata struct{ Name string }
		Rules    []rbacv1.PolicyRule
		Webhooks []admissionregistrationv1.ValidatingWebhook
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	parts := strings.Split(file, "/")
	switch o.Kind {
	case "CustomResourceDefinition":
		crd := &apiextensionsv1.CustomResourceDefinition{}
		s.CRDs[o.Metadata.Name] = crd
		return json.Unmarshal(raw, crd)
	case "ClusterRole", "Role":
		if slices.Contains(managerRoles, path.Base(file)) {
			s.Roles = append(s.Roles, ShippedRole{
				Component: parts[1], Name: o.Metadata.Name, Inside: o.Kind == "Role", Narrowed: len(parts) > 3, Rules: o.Rules,
			})
		}
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		name := o.Kind + " " + o.Metadata.Name
		s.Configurations[name] = parts[1]
		for _, w := range o.Webhooks {
			if service := w.ClientConfig.Service; service != nil && service.Path != nil {
				s.Calls[name] = append(s.Calls[name], o.Kind+" "+*service.Path)
			}
		}
	}
	return nil
}

// same tells that two CRDs say the same of their versions: schemas, subresources, columns, which is served and which is stored. What an
// API server fills in, and where conversion goes, counts for nothing.
func same(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	return a.Spec.Group == b.Spec.Group && a.Spec.Scope == b.Spec.Scope && equality.Semantic.DeepEqual(a.Spec.Versions, b.Spec.Versions)
}

// shown is how many missing permissions a finding names.
const shown = 4

// checkRights compares what the manager's account may do with the roles that come with it. Bindings count by what they allow, not by
// their names: installers give them others.
func checkRights(f *Facts, ships Shipped) (problems []Finding, fine string) {
	account := f.Manager.Deployment.Spec.Template.Spec.ServiceAccountName
	checked := 0
	for _, role := range ships.Roles {
		if !f.needs(role.Component) {
			continue
		}
		checked++
		missing := f.withheld(role)
		if len(missing) == 0 {
			continue
		}
		found := "account " + account + " may not " + strings.Join(missing[:min(shown, len(missing))], ", ")
		if more := len(missing) - shown; more > 0 {
			found += fmt.Sprintf(" and %d more", more)
		}
		problems = append(problems, Finding{Result: Fail, Subject: "role " + role.Name, Found: found,
			Fix: "restore the roles and bindings of component " + role.Component + ": " + redeploy(f)})
	}
	return problems, fmt.Sprintf("account %s has all permissions of %d roles", account, checked)
}

// needs tells whether the roles of a folder belong to what is on.
func (f *Facts) needs(folder string) bool {
	switch folder {
	case "manager":
		return true
	case "mlflowaccess":
		return f.enabled("mlflow") && f.Manager.Settings.Config.MLflow.NamespaceRBAC
	}
	return f.enabled(folder) // appwrapper-slack-queue, which a ConfigMap asks for, is no component
}

// withheld are the permissions of a role that the account does not have. For roles of a namespace, and for those that an installation may
// narrow to namespaces, bindings in any namespace count.
func (f *Facts) withheld(role ShippedRole) []string {
	granted := slices.Clone(f.Granted.Everywhere)
	if role.Inside || role.Narrowed {
		granted = append(granted, f.Granted.Inside...)
	}
	_, rules := validation.Covers(granted, role.Rules)
	var missing []string
	for _, rule := range rules {
		missing = append(missing, inWords(rule))
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// inWords names what a rule of one verb and one resource or path allows.
func inWords(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return rule.Verbs[0] + " " + rule.NonResourceURLs[0]
	}
	name, part, _ := strings.Cut(rule.Resources[0], "/")
	what := schema.GroupResource{Group: rule.APIGroups[0], Resource: name}.String()
	if part != "" {
		what += "/" + part
	}
	return strings.Join(append([]string{rule.Verbs[0], what}, rule.ResourceNames...), " ")
}
