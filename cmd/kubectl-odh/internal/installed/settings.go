package installed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/ours"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// anyVersion stands for the release of MLflow that the manager's build supports, which the Deployment does not show.
const anyVersion = "0.0.0"

// Settings are what a manager runs with, as far as its Deployment shows.
type Settings struct {
	// Known tells whether they could be read; Problem says why not, or what the manager would say of them.
	Known   bool
	Problem string
	Config  config.Config
	// Unread are settings that stand where they could not be read, so that Config has their defaults.
	Unread []Unread
}

// Unread is a setting that could not be read.
type Unread struct {
	// Variable of the manager, empty for all that the object may set.
	Variable string
	// Kind, Namespace and Name are those of the object where it stands.
	Kind, Namespace, Name string
}

// String names the setting and where it stands.
func (u Unread) String() string {
	return cmp.Or(u.Variable, "whatever variables there are") + " in " + u.Kind + " " + u.Namespace + "/" + u.Name
}

// Unreadable is a sentence about the settings that could not be read; empty when all could.
func (s Settings) Unreadable() string {
	if len(s.Unread) == 0 {
		return ""
	}
	var names []string
	for _, u := range s.Unread {
		names = append(names, u.String())
	}
	return "settings of the manager that could not be read count as their defaults: " + strings.Join(names, ", ")
}

// readSettings reads the settings as the manager does. Secrets are not read.
func readSettings(ctx context.Context, reader fetch.Reader, set served.Set, d *appsv1.Deployment, gaps *fetch.Gaps) Settings {
	c := managerContainer(d)
	if c == nil {
		return Settings{Problem: fmt.Sprintf("the Deployment has no container %q", container)}
	}
	w := &podView{
		ctx: ctx, reader: reader, set: set, gaps: gaps, namespace: d.Namespace, pod: &d.Spec.Template.Spec,
		maps: map[string]map[string]string{}, hidden: map[string]bool{},
	}
	environment, unread := w.environment(c)
	asked := map[string]bool{}
	lookup := func(name string) (string, bool) {
		asked[name] = true
		value, found := environment[name]
		return value, found
	}
	loaded, err := config.Load(config.Program{Components: ours.Names(), MLflowVersion: anyVersion}, arguments(c), lookup, w.file(c))
	// What is no setting of the manager does not matter.
	unread = slices.DeleteFunc(unread, func(u Unread) bool { return u.Variable != "" && !asked[u.Variable] })
	if err != nil {
		return Settings{Problem: err.Error(), Unread: unread}
	}
	return Settings{Known: true, Config: loaded, Unread: unread}
}

// arguments of the manager, without the word for its default sub-command.
func arguments(c *corev1.Container) []string {
	args := c.Args
	if len(c.Command) > 1 {
		args = append(append([]string{}, c.Command[1:]...), args...)
	}
	if len(args) > 0 && args[0] == "run" {
		return args[1:]
	}
	return args
}

// podView is what a container of a pod sees.
type podView struct {
	ctx       context.Context
	reader    fetch.Reader
	set       served.Set
	gaps      *fetch.Gaps
	namespace string
	pod       *corev1.PodSpec
	maps      map[string]map[string]string
	// hidden are the ConfigMaps among maps that could not be read.
	hidden map[string]bool
}

// configMap returns the texts of a ConfigMap, and whether they are known: one that does not exist is known to have none.
func (p *podView) configMap(name string) (data map[string]string, known bool) {
	if data, read := p.maps[name]; read {
		return data, !p.hidden[name]
	}
	kind, ok := p.set.Kind("", "ConfigMap")
	if !ok {
		return nil, true
	}
	u, err := p.reader.Get(p.ctx, kind, p.namespace, name)
	if p.gaps.Note("ConfigMap "+p.namespace+"/"+name, err) {
		data, _, _ = unstructured.NestedStringMap(u.Object, "data")
	}
	p.maps[name], p.hidden[name] = data, err != nil && !apierrors.IsNotFound(err)
	return data, !p.hidden[name]
}

// environment of a container, and the variables that could not be read: of variables that refer to others only the text is known, and
// of Secrets nothing.
func (p *podView) environment(c *corev1.Container) (all map[string]string, unread []Unread) {
	all = map[string]string{}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			unread = append(unread, Unread{"", "Secret", p.namespace, from.SecretRef.Name})
		}
		if from.ConfigMapRef == nil {
			continue
		}
		data, known := p.configMap(from.ConfigMapRef.Name)
		if !known {
			unread = append(unread, Unread{"", "ConfigMap", p.namespace, from.ConfigMapRef.Name})
		}
		for name, value := range data {
			all[from.Prefix+name] = value
		}
	}
	for _, variable := range c.Env {
		value, set, missing := p.variable(variable)
		if set {
			all[variable.Name] = value
		}
		if missing != nil {
			unread = append(unread, *missing)
		}
	}
	return all, unread
}

// variable returns the value of a variable, whether it has one, and where it is if it could not be read.
func (p *podView) variable(v corev1.EnvVar) (value string, set bool, unread *Unread) {
	source := v.ValueFrom
	switch {
	case source == nil:
		return v.Value, true, nil
	case source.ConfigMapKeyRef != nil:
		data, known := p.configMap(source.ConfigMapKeyRef.Name)
		if !known {
			return "", false, &Unread{v.Name, "ConfigMap", p.namespace, source.ConfigMapKeyRef.Name}
		}
		value, set = data[source.ConfigMapKeyRef.Key]
		return value, set, nil
	case source.SecretKeyRef != nil:
		return "", false, &Unread{v.Name, "Secret", p.namespace, source.SecretKeyRef.Name}
	}
	return p.namespace, source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace", nil
}

// file reads the files that ConfigMaps put into a container.
func (p *podView) file(c *corev1.Container) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, mount := range c.VolumeMounts {
			below, inside := strings.CutPrefix(path.Clean(name), path.Clean(mount.MountPath))
			i := slices.IndexFunc(p.pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			if !inside || i < 0 {
				continue
			}
			key := strings.TrimPrefix(below, "/")
			if mount.SubPath != "" {
				key = path.Join(mount.SubPath, key)
			}
			content, found, why := p.mounted(p.pod.Volumes[i], key)
			if why != "" {
				return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New(why)}
			}
			if found {
				return []byte(content), nil
			}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

// mounted returns a file of a volume that a ConfigMap fills, or why it cannot be read.
func (p *podView) mounted(v corev1.Volume, file string) (content string, found bool, why string) {
	if v.Secret != nil {
		return "", false, "it is in Secret " + p.namespace + "/" + v.Secret.SecretName + ", and Secrets are not read"
	}
	if v.ConfigMap == nil {
		return "", false, ""
	}
	data, known := p.configMap(v.ConfigMap.Name)
	if !known {
		return "", false, "it is in ConfigMap " + p.namespace + "/" + v.ConfigMap.Name + ", which could not be read"
	}
	for _, item := range v.ConfigMap.Items {
		if item.Path == file {
			file = item.Key
		}
	}
	content, found = data[file]
	return content, found, ""
}
