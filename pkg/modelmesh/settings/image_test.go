package settings

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// [modelmesh-40] The parts of an image are merged one by one.
func TestImagePartsAreMerged(t *testing.T) {
	shipped := Image{Name: "shipped/mm", Tag: "latest", Digest: "sha256:aa"}
	for name, tc := range map[string]struct {
		base Image
		text string
		want string
	}{
		"no override":                         {shipped, "", "shipped/mm@sha256:aa"},
		"only a tag removes the digest [M36]": {shipped, "tag: v2", "shipped/mm:v2"},
		"only a digest":                       {shipped, "digest: sha256:bb", "shipped/mm@sha256:bb"},
		"digest without a tag anywhere":       {Image{Name: "mm"}, "digest: sha256:bb", "mm@sha256:bb"},
		"tag and digest":                      {shipped, "{tag: v2, digest: sha256:bb}", "shipped/mm@sha256:bb"},
		"name, tag and digest":                {shipped, "{name: n, tag: t, digest: sha256:bb}", "n@sha256:bb"},
		"tag as a float with a digest":        {shipped, "{tag: 1.0, digest: sha256:bb}", "shipped/mm@sha256:bb"},
		"tag as a float":                      {shipped, "tag: 1.10", "shipped/mm:1.10"},
		"tag as a number":                     {shipped, "tag: 007", "shipped/mm:007"},
		"only a name":                         {shipped, "name: mirror:5000/mm", "mirror:5000/mm@sha256:aa"},
		"only a name, default with a tag":     {Image{Name: "mm", Tag: "latest"}, "name: mirror:5000/mm", "mirror:5000/mm:latest"},
		"full reference with a tag":           {shipped, "name: mirror:5000/mm:v3", "mirror:5000/mm:v3"},
		"full reference with a digest":        {shipped, "name: q/mm@sha256:cc", "q/mm@sha256:cc"},
		"full reference with tag and digest":  {shipped, "name: q/mm:v3@sha256:cc", "q/mm:v3@sha256:cc"},
		"digest, and a tag in the name":       {shipped, "{name: 'q/mm:v3', digest: sha256:cc}", "q/mm:v3@sha256:cc"},
		"full reference and empty parts":      {shipped, "{name: 'q/mm:v3', tag: '', digest: ''}", "q/mm:v3"},
		"full reference and an empty tag":     {shipped, "{name: 'q/mm@sha256:cc', tag: ''}", "q/mm@sha256:cc"},
		"tag, default with a full reference":  {ParseImage("q/mm:v3"), "tag: v4", "q/mm:v4"},
		"tag, default with tag and digest":    {ParseImage("h:5/mm:v3@sha256:cc"), "tag: v4", "h:5/mm:v4"},
		"empty tag":                           {Image{Name: "mm", Tag: "latest"}, "tag: ''", "mm"},
		"empty digest":                        {shipped, "digest: ''", "shipped/mm:latest"},
		"null is ignored":                     {shipped, "{name: null, tag: ~, digest: }", "shipped/mm@sha256:aa"},
		"spaces around a tag":                 {shipped, "tag: ' v5 '", "shipped/mm:v5"},
		"keys in another case":                {shipped, "{NAME: n, Tag: t}", "n:t"},
		"unknown key":                         {shipped, "{tag: v6, commands: [x]}", "shipped/mm:v6"},
	} {
		t.Run(name, func(t *testing.T) {
			base := Default()
			base.ModelMeshImage = tc.base
			text := ""
			if tc.text != "" {
				text = "modelMeshImage: " + tc.text
				if !strings.HasPrefix(tc.text, "{") {
					text = "modelMeshImage: {" + tc.text + "}"
				}
			}
			got, _, err := Read(base, text)
			if err != nil || got.ModelMeshImage.Reference() != tc.want {
				t.Errorf("got %q and error %v, want %q", got.ModelMeshImage.Reference(), err, tc.want)
			}
		})
	}
	if got := (Image{Tag: "v1"}).Reference(); got != "" {
		t.Errorf("got %q without a name, want none", got)
	}
}

func TestImageErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{name: 'a:1', tag: 2}":            `modelMeshImage.name "a:1" must have no tag and no digest if separate keys set these`,
		"{name: 'a@sha256:1', tag: 2}":     "must have no tag and no digest",
		"{name: 'a@sha256:1', digest: d}":  "must have no tag and no digest",
		"{name: 'a:1', tag: 2, digest: d}": "must have no tag and no digest",
		"{name: ''}":                       `modelMeshImage.name "" must name an image`,
		"{name: 'a b'}":                    `modelMeshImage.name "a b": must be part of an image reference`,
		"{name: 'https://a/b'}":            "must be part of an image reference",
		"{tag: [v1]}":                      `modelMeshImage.tag a list: must be part`,
		"quay.io/example/modelmesh:v1":     `modelMeshImage "quay.io/example/modelmesh:v1": must be an object`,
		"{name: {a: b}, tag: \"a\\tb\"}":   "modelMeshImage.name an object",
	} {
		expectRejected(t, "modelMeshImage: "+text, want)
	}
	expectRejected(t, "storageHelperImage: {command: /opt/app/puller}", "storageHelperImage.command", "must be a list of strings")
}

func TestImageReferenceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reference := rapid.StringMatching(`([a-z0-9.-]{1,10}(:[0-9]{1,5})?/)?[a-z0-9]{1,8}(/[a-z0-9]{1,8})?(:[A-Za-z0-9._-]{1,10})?(@sha256:[0-9a-f]{8})?`).Draw(t, "reference")
		if got := ParseImage(" " + reference + "\n").Reference(); got != reference {
			t.Fatalf("ParseImage(%q) has the reference %q", reference, got)
		}
	})
}
