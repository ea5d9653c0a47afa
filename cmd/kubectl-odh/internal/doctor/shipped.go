package doctor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	shipped "github.com/odh-platform/odh-platform-operator/config"
)

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
		return s.read(files, name)
	})
	return s, err
}

// builtIn is what this program was built with.
func builtIn() (Shipped, error) { return readShipped(shipped.Files) }

func (s *Shipped) read(files fs.FS, name string) error {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var raw json.RawMessage
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(raw) > 0 {
			err = s.add(name, raw)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
}

// add sorts in one object.
func (s *Shipped) add(file string, raw json.RawMessage) error {
	var head struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	parts := strings.Split(file, "/")
	switch head.Kind {
	case "CustomResourceDefinition":
		crd := &apiextensionsv1.CustomResourceDefinition{}
		s.CRDs[head.Metadata.Name] = crd
		return json.Unmarshal(raw, crd)
	case "ClusterRole", "Role":
		role := rbacv1.ClusterRole{}
		if err := json.Unmarshal(raw, &role); err != nil {
			return err
		}
		s.addRole(parts, head.Kind, role)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		name := head.Kind + " " + head.Metadata.Name
		s.Configurations[name] = parts[1]
		return s.addCalls(name, head.Kind, raw)
	}
	return nil
}

// addCalls records the paths of a configuration. Both kinds of configuration have them in the same place.
func (s *Shipped) addCalls(name, kind string, raw json.RawMessage) error {
	c := admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	for _, w := range c.Webhooks {
		if service := w.ClientConfig.Service; service != nil && service.Path != nil {
			s.Calls[name] = append(s.Calls[name], kind+" "+*service.Path)
		}
	}
	return nil
}

// addRole keeps a role of the manager; roles for users are in other files.
func (s *Shipped) addRole(parts []string, kind string, role rbacv1.ClusterRole) {
	if slices.Contains([]string{"role.yaml", "leader_election.yaml", "webhook_certificate.yaml", "older_config.yaml"}, parts[len(parts)-1]) {
		s.Roles = append(s.Roles, ShippedRole{Component: parts[1], Name: role.Name, Inside: kind == "Role", Narrowed: len(parts) > 3, Rules: role.Rules})
	}
}

// Fingerprint tells CRDs apart by what they say of their versions: schemas, subresources, columns, which is served and which is
// stored. What an API server fills in, and where conversion goes, counts for nothing.
func Fingerprint(crd *apiextensionsv1.CustomResourceDefinition) string {
	versions := make([]apiextensionsv1.CustomResourceDefinitionVersion, len(crd.Spec.Versions))
	for i := range crd.Spec.Versions {
		v := crd.Spec.Versions[i].DeepCopy()
		if len(v.AdditionalPrinterColumns) == 0 {
			v.AdditionalPrinterColumns = nil
		}
		versions[i] = *v
	}
	text, _ := json.Marshal(struct { // types of the API: all have a form
		Group, Scope string
		Versions     []apiextensionsv1.CustomResourceDefinitionVersion
	}{crd.Spec.Group, string(crd.Spec.Scope), versions})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:12]
}
