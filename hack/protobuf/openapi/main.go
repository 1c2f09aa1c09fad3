// Command openapi writes a document of OpenAPI's second version in protobuf, as Go does it.
//
// It reads JSON (go run ./openapi <document.json >document.pb). With a file that somebody else
// wrote it says instead whether that says the same (go run ./openapi theirs.pb <document.json).
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	openapi "github.com/google/gnostic-models/openapiv2"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func main() {
	log.SetFlags(0)
	text, err := io.ReadAll(os.Stdin)
	check(err)
	document, err := openapi.ParseDocument(text)
	check(err)
	normalise(document.ProtoReflect())
	if len(os.Args) < 2 {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(document)
		check(err)
		_, err = os.Stdout.Write(data)
		check(err)
		return
	}
	data, err := os.ReadFile(os.Args[1])
	check(err)
	theirs := &openapi.Document{}
	check(proto.Unmarshal(data, theirs))
	normalise(theirs.ProtoReflect())
	if !proto.Equal(document, theirs) {
		log.Fatal("they differ")
	}
	fmt.Println("they say the same")
}

// normalise writes all YAML in a message as JSON, so that there is one way to write it.
func normalise(message protoreflect.Message) {
	if found, ok := message.Interface().(*openapi.Any); ok {
		var value any
		check(yaml.Unmarshal([]byte(found.Yaml), &value))
		text, err := json.Marshal(value)
		check(err)
		found.Yaml = string(text) + "\n"
		return
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range value.List().Len() {
				normalise(value.List().Get(i).Message())
			}
		default:
			normalise(value.Message())
		}
		return true
	})
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
