package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

// bundle builds the OLM bundle with the image of this release, and a catalog with the bundle. The bundle in the checkout is not changed.
func (r *release) bundle(ctx context.Context) error {
	for _, folder := range []string{"config", "bundle"} {
		if err := os.CopyFS(filepath.Join(r.work, folder), os.DirFS(filepath.Join(r.root, folder))); err != nil {
			return fmt.Errorf("copying the sources of the bundle: %w", err)
		}
	}
	if err := r.command(ctx, nil, "go", "run", "./cmd/generate/bundle", "--root", r.work, "--version", r.version, "--image", r.reference(operatorName)); err != nil {
		return err
	}
	files, err := readFolder(filepath.Join(r.work, "bundle"))
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	annotations := struct{ Annotations map[string]string }{}
	if err := decode(files, "metadata/annotations.yaml", &annotations); err != nil {
		return err
	}
	if err := r.pack(bundleName, "bundle", files, annotations.Annotations); err != nil {
		return err
	}
	catalog, err := r.catalog(files, annotations.Annotations["operators.operatorframework.io.bundle.channel.default.v1"])
	if err != nil {
		return fmt.Errorf("building the catalog: %w", err)
	}
	// OLM copies the catalog out of the image, so the image needs no program to serve it.
	return r.pack(catalogName, "catalog", []file{{"configs/" + operatorName + "/catalog.yaml", 0o644, 0, catalog}},
		map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"})
}

// pack writes files into a folder of the release, and into an image without other files.
func (r *release) pack(name, folder string, files []file, labels map[string]string) error {
	for _, f := range files {
		if err := r.write(folder+"/"+strings.TrimPrefix(f.name, "configs/"), f.content); err != nil {
			return err
		}
	}
	layer, err := newLayer(files, r.source.time)
	if err != nil {
		return err
	}
	i := newIndex()
	for _, p := range r.imagePlatforms {
		if i, err = appendImage(i, p, v1.Config{Labels: labels, WorkingDir: "/"}, r.source.time, layer); err != nil {
			return err
		}
	}
	return r.save(name, i)
}

func decode(files []file, name string, target any) error {
	index := slices.IndexFunc(files, func(f file) bool { return f.name == name })
	if index < 0 {
		return fmt.Errorf("there is no file %s", name)
	}
	if err := yaml.Unmarshal(files[index].content, target); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

type property struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// csv has the fields of a ClusterServiceVersion that a catalog contains.
type csv struct {
	Metadata struct {
		Name        string
		Annotations map[string]any
		Labels      map[string]any
	}
	Spec map[string]any
}

// catalog returns a file-based catalog with this version, as `opm render` would:
// https://olm.operatorframework.io/docs/reference/file-based-catalogs.
func (r *release) catalog(files []file, channel string) ([]byte, error) {
	c := csv{}
	if err := decode(files, "manifests/"+operatorName+".clusterserviceversion.yaml", &c); err != nil {
		return nil, err
	}
	properties, err := c.kindProperties()
	if err != nil {
		return nil, err
	}
	properties = append(properties, property{"olm.package", map[string]any{"packageName": operatorName, "version": r.version}},
		property{"olm.csv.metadata", c.summary()})
	// OLM v1 accepts no reference with both a tag and a digest.
	image := r.registry + "/" + bundleName + "@" + r.subjects[r.registry+"/"+bundleName]
	related, _ := c.Spec["relatedImages"].([]any)
	related = append([]any{map[string]any{"name": "", "image": image}}, related...)
	icon, _ := c.Spec["icon"].([]any)
	documents := []map[string]any{
		{"schema": "olm.package", "name": operatorName, "defaultChannel": channel, "description": c.Spec["description"]},
		// Every earlier version can be upgraded to this one directly.
		{"schema": "olm.channel", "package": operatorName, "name": channel, "entries": []any{map[string]any{"name": c.Metadata.Name, "skipRange": "<" + r.version}}},
		{"schema": "olm.bundle", "package": operatorName, "name": c.Metadata.Name, "image": image, "properties": properties, "relatedImages": related},
	}
	if len(icon) > 0 {
		first, _ := icon[0].(map[string]any)
		documents[0]["icon"] = map[string]any{"base64data": first["base64data"], "mediatype": first["mediatype"]}
	}
	var out strings.Builder
	for _, d := range documents {
		text, err := yaml.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("encoding the catalog: %w", err)
		}
		out.WriteString("---\n" + string(text))
	}
	return []byte(out.String()), nil
}

// kindProperties returns a property for each kind of the operator.
func (c csv) kindProperties() ([]property, error) {
	crds, _ := c.Spec["customresourcedefinitions"].(map[string]any)
	owned, _ := crds["owned"].([]any)
	if len(owned) == 0 {
		return nil, errors.New("the ClusterServiceVersion has no owned CRDs")
	}
	var out []property
	for _, o := range owned {
		o, _ := o.(map[string]any)
		name, _ := o["name"].(string)
		_, group, _ := strings.Cut(name, ".")
		out = append(out, property{"olm.gvk", map[string]any{"group": group, "kind": o["kind"], "version": o["version"]}})
	}
	return out, nil
}

// summary returns the value of the property olm.csv.metadata.
func (c csv) summary() map[string]any {
	out := map[string]any{"annotations": c.Metadata.Annotations, "labels": c.Metadata.Labels, "crdDescriptions": c.Spec["customresourcedefinitions"]}
	for _, key := range []string{
		"apiServiceDefinitions", "description", "displayName", "installModes", "keywords", "links", "maintainers", "maturity", "minKubeVersion", "nativeAPIs", "provider",
	} {
		if value, found := c.Spec[strings.Replace(key, "apiServiceDefinitions", "apiservicedefinitions", 1)]; found {
			out[key] = value
		}
	}
	return out
}
