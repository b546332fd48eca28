//! mapred-site.xml: values that were there stay, comments and layout stay, and what is put in can be taken out.

use deploy::site_xml::{SiteError, install, remove};
use deploy::versions::{Generation, properties};
use proptest::prelude::*;
use roxmltree::Document;

const AGENT: &str = "-javaagent:/opt/hadoptic/lib/hadoptic-agent.jar=out=/var/lib/hadoptic/capture";
const MAP: &str = "mapreduce.admin.map.child.java.opts";

fn put(text: &str) -> String {
    install(text, properties(Generation::Three), AGENT, &[]).unwrap()
}

fn take(text: &str) -> String {
    remove(text, &[AGENT.to_owned()]).unwrap()
}

/// As Hadoop takes it: the last one, or the first final one.
fn value(text: &str, name: &str) -> Option<String> {
    let document = Document::parse(text).unwrap();
    let mut value = None;
    for property in document.descendants().filter(|node| node.has_tag_name("property")) {
        let of = |name: &str| {
            let child = property.children().find(|node| node.has_tag_name(name));
            child.map(|c| c.text().unwrap_or("").to_owned()).or(property.attribute(name).map(str::to_owned))
        };
        if of("name").as_deref().map(str::trim) == Some(name) {
            value = of("value").or(value);
            if of("final").as_deref() == Some("true") {
                break;
            }
        }
    }
    value
}

#[test]
fn where_nothing_is_said_the_versions_default_stays_before_the_agent() {
    let text = "<?xml version=\"1.0\"?>\n<!-- ours -->\n<configuration>\n</configuration>\n";
    let edited = put(text);
    let default = "-Djava.net.preferIPv4Stack=true -Dhadoop.metrics.log.level=WARN";
    assert_eq!(value(&edited, MAP).unwrap(), format!("{default} {AGENT}"));
    assert_eq!(value(&edited, "yarn.app.mapreduce.am.admin-command-opts").unwrap(), AGENT);
    assert!(edited.contains("<!-- ours -->"));
    assert_eq!(take(&edited), text);
    let one = install(text, properties(Generation::One), AGENT, &[]).unwrap();
    assert_eq!(value(&one, "mapred.child.java.opts").unwrap(), format!("-Xmx200m {AGENT}"));
    assert_eq!(value(&one, "mapred.map.child.java.opts"), None);
}

#[test]
fn a_value_that_is_there_is_appended_to_in_place() {
    for (value_before, after) in [
        ("<value>-Xmx1g</value>", format!("-Xmx1g {AGENT}")),
        ("<value>\n  -Xmx1g\n  </value>", format!("\n  -Xmx1g {AGENT}\n  ")),
        ("<value>-Da=\"&lt;b&gt;\" ${x}</value>", format!("-Da=\"<b>\" ${{x}} {AGENT}")),
        ("<value><![CDATA[-Da=<b>]]></value>", format!("-Da=<b> {AGENT}")),
        ("<final>true</final><value>-Xmx1g</value>", format!("-Xmx1g {AGENT}")),
    ] {
        let text = format!(
            "<configuration>\n  <!-- a < b -->\n  <property><name> {MAP} </name>{value_before}</property></configuration>"
        );
        let edited = put(&text);
        assert_eq!(value(&edited, MAP).unwrap(), after, "{edited}");
        assert_eq!(take(&edited), text);
        assert_eq!(put(&edited), edited);
    }
}

#[test]
fn attributes_are_values_too() {
    let text = format!("<configuration><property name=\"{MAP}\" value='-Xmx1g' final=\"true\"/></configuration>");
    assert_eq!(value(&put(&text), MAP).unwrap(), format!("-Xmx1g {AGENT}"));
    assert_eq!(take(&put(&text)), text);
}

#[test]
fn of_several_the_one_that_counts_is_edited() {
    let text = format!(
        "<configuration><property><name>{MAP}</name><value>-a</value><final>true</final></property>\n\
         <property><name>{MAP}</name><value>-b</value></property></configuration>"
    );
    let edited = put(&text);
    assert_eq!(value(&edited, MAP).unwrap(), format!("-a {AGENT}"));
    assert!(edited.contains("<value>-b</value>"));
}

#[test]
fn a_value_that_cannot_be_appended_to_is_overridden_unless_it_is_final() {
    let text =
        format!("<configuration><property><name>{MAP}</name><value>-a<!-- b --></value></property></configuration>");
    assert_eq!(value(&put(&text), MAP).unwrap(), format!("-a {AGENT}"));
    assert_eq!(take(&put(&text)), text);
    let text =
        format!("<configuration><property><name>{MAP}</name><value/><final>true</final></property></configuration>");
    assert_eq!(
        install(&text, properties(Generation::Two), AGENT, &[]),
        Err(SiteError::Odd("mapreduce.admin.map.child.java.opts"))
    );
}

#[test]
fn an_agent_of_other_hands_is_not_doubled_and_not_taken_out() {
    let text = "<configuration><property><name>mapreduce.map.java.opts</name>\
                <value>-javaagent:/x/hadoptic-agent.jar=out=/y</value></property></configuration>";
    assert_eq!(install(text, properties(Generation::Two), AGENT, &[]), Err(SiteError::AgentByHand));
    assert_eq!(take(text), text);
}

#[test]
fn the_agent_of_an_earlier_run_gives_way_to_that_of_this_one() {
    let text = format!("<configuration><property><name>{MAP}</name><value>-a</value></property></configuration>");
    let longer = format!("{AGENT}2");
    let earlier = install(&text, properties(Generation::Two), &longer, &[]).unwrap();
    let edited = install(&earlier, properties(Generation::Two), AGENT, std::slice::from_ref(&longer)).unwrap();
    assert_eq!(value(&edited, MAP).unwrap(), format!("-a {AGENT}"));
    assert_eq!(take(&edited), text);
}

#[test]
fn what_is_no_configuration_is_left_alone() {
    for text in ["", "no xml", "<configuration>", "<other/>", "<configuration><!-- >>> hadoptic --></configuration>"] {
        assert!(install(text, properties(Generation::Two), AGENT, &[]).is_err(), "{text}");
    }
    let included =
        "<configuration xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include href=\"x.xml\"/></configuration>";
    assert!(matches!(install(included, properties(Generation::Two), AGENT, &[]), Err(SiteError::Includes(_))));
}

fn space() -> impl Strategy<Value = String> {
    "[ \t\n]{0,3}"
}

fn property() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("mapreduce.admin.map.child.java.opts".to_owned()),
        Just("mapreduce.admin.reduce.child.java.opts".to_owned()),
        Just("yarn.app.mapreduce.am.admin-command-opts".to_owned()),
        "[a-z.]{1,12}",
    ];
    let value = prop_oneof![
        "[ -;=?-~]{0,20}"
            .prop_map(|text| format!("<value>{}</value>", text.replace('&', "&amp;").replace("]]", "")))
            .prop_filter("entities", |text| !text.contains("hadoptic")),
        Just("<value/>".to_owned()),
        Just("<value></value>".to_owned()),
        Just("<value>a<!-- c -->b</value>".to_owned()),
        Just("<value><![CDATA[a]]></value>".to_owned()),
        Just("<value>a<![CDATA[b]]>c</value>".to_owned()),
        Just(String::new()),
    ];
    let last = prop_oneof![Just(""), Just("<final>true</final>"), Just("<description>it's</description>")];
    (space(), name, space(), value, last, space()).prop_map(|(a, name, b, value, last, c)| {
        format!("{a}<property>{b}<name>{name}</name>{c}{value}{last}</property>{a}")
    })
}

fn file() -> impl Strategy<Value = String> {
    let head = prop_oneof![
        Just(""),
        Just("<?xml version=\"1.0\"?>\n"),
        Just("<?xml version=\"1.0\"?>\r\n<!-- über alles -->\r\n"),
    ];
    let empty =
        prop_oneof![Just("<configuration/>"), Just("<configuration a='b' />"), Just("<configuration></configuration>")];
    let full = (proptest::collection::vec(property(), 0..5), space())
        .prop_map(|(all, space)| format!("<configuration>{}{space}</configuration>", all.concat()));
    (
        head,
        prop_oneof![1 => empty.prop_map(str::to_owned), 4 => full],
        prop_oneof![Just(""), Just("\n"), Just("\n<!-- end -->")],
    )
        .prop_map(|(head, body, tail)| format!("{head}{body}{tail}"))
}

proptest! {
    #[test]
    fn taken_out_the_file_is_what_it_was(text in file()) {
        if let Ok(edited) = install(&text, properties(Generation::Three), AGENT, &[]) {
            prop_assert_eq!(take(&edited), text);
        }
    }

    #[test]
    fn twice_is_once(text in file()) {
        if let Ok(edited) = install(&text, properties(Generation::Three), AGENT, &[]) {
            let again = install(&edited, properties(Generation::Three), AGENT, &[]).unwrap();
            prop_assert_eq!(again, edited);
        }
    }

    #[test]
    fn only_final_values_of_odd_form_cannot_be_edited(text in file()) {
        match install(&text, properties(Generation::Three), AGENT, &[]) {
            Ok(edited) => {
                for property in properties(Generation::Three) {
                    prop_assert_eq!(edited.matches(AGENT).count(), 3);
                    prop_assert!(value(&edited, property.name).is_some());
                }
            }
            Err(SiteError::Odd(_)) => prop_assert!(text.contains("<final>")),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
