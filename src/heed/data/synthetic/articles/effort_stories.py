"""Stories of long efforts: collections of money and journeys."""

from heed.data.synthetic.articles.story import StoryKind

COLLECTION = StoryKind(
    name="collection",
    things=("ambulance", "lifeboat", "school piano", "playground", "church organ", "fire engine", "town clock"),
    jobs=("a student", "a shopkeeper", "a retired nurse", "a taxi driver", "a music teacher", "a young farmer"),
    amounts=(1_200, 48_000, 100),
    causes=(
        ("{last} sold cakes at the station every weekend", "by selling cakes at the station"),
        ("{last} cycled around the lake a hundred times", "by cycling around the lake"),
        ("{last} wrote letters to every house in town", "by writing letters to every house"),
        ("{last} gave concerts in the market square", "by giving concerts in the market square"),
        ("{last} sold {their} collection of stamps", "by selling {their} stamps"),
        ("{last} washed cars for a whole summer", "by washing cars for a whole summer"),
        ("{last} asked all guests for coins instead of presents", "by asking guests for coins instead of presents"),
    ),
    lead=(
        "{where} will get a new {thing}.",
        "There is enough money for a new {thing} in {where}.",
        "A wish of many people in {where} is coming true: a new {thing}.",
        "The money for a new {thing} in {where} was handed over {day}.",
        "Thanks to {who}, {where} can buy a new {thing}.",
    ),
    who=(
        "The money was collected by {who}, {job}.",
        "The town owes this to {who}, {job}.",
        "It was the idea of {who}, {job}.",
    ),
    day=(
        "{last} handed over the money {day}.",
        "The mayor accepted the cheque {day} and said thank you.",
        "The money was brought to the town hall {day}.",
    ),
    many=(
        "The money came to {many} dollars in the end.",
        "The sum is {many} dollars.",
        "{last} brought together {many} dollars.",
    ),
    why=(
        "{Reason}.",
        "To reach the goal, {reason}.",
        "There was no trick to it: {reason}.",
    ),
    restatements=(
        "{last} found the money {why}.",
        "Nobody in {where} had believed that {last} could collect {many} dollars.",
        "The new {thing} will cost {many} dollars, and {where} now has them.",
        "Without {who}, there would be no new {thing} in {where}.",
    ),
    quotes=(
        '"People gave more than they could spare," said {last}.',
        '"I only wanted to help," said {last}.',
        '"Some days I wanted to give up," {last} said.',
    ),
    distractors=(
        "{someone} alone gave {number} dollars.",
        "The old {thing} had served for {number} years.",
        "In {elsewhere}, people are still waiting for something like that.",
        "The town council of {elsewhere} would like to do the same.",
    ),
    summary=(
        "{who} collected {many} dollars for a new {thing} in {where} {why}. The money was handed over {day}.",
        "{Day}, {who} handed over {many} dollars for {a_thing} in {where}, raised {why}.",
        "{where} will get {a_thing} for {many} dollars. {who} raised the money {why} and handed it over {day}.",
    ),
)

JOURNEY = StoryKind(
    name="journey",
    things=("bicycle", "rowing boat", "tractor", "canoe", "horse cart", "scooter", "handcart"),
    jobs=("a postal worker", "a baker", "a retired pilot", "a painter", "a young doctor", "a librarian"),
    amounts=(120, 4_800, 10),
    causes=(
        ("{last} had lost a bet with {their} brother", "because of a lost bet"),
        ("{last} wanted to see a sister after many years", "to see a sister"),
        ("{last} is collecting songs for a book", "to collect songs for a book"),
        ("a doctor had told {last} to get more fresh air", "on the advice of a doctor"),
        ("{last} wanted to meet an old pen friend at last", "to meet an old pen friend"),
        ("{last} had given {their} father a promise", "to keep a promise"),
        ("{last} had grown tired of the city", "to get away from the city"),
    ),
    lead=(
        "A traveller with {a_thing} has arrived in {where}.",
        "Children ran through the streets of {where} when {a_thing} came into town.",
        "A long journey by {thing} has come to its end in {where}.",
        "A journey by {thing} ended in {where} {day}.",
        "{who} has reached {where} by {thing}.",
    ),
    who=(
        "The traveller is {who}, {job}.",
        "It was {who}, {job}, who waved to the crowd.",
        "Everyone wanted to shake hands with {who}, {job}.",
    ),
    day=(
        "{last} arrived {day}, tired and happy.",
        "The journey was over {day}, when the church clock struck.",
        "{last} was welcomed {day} with flowers.",
    ),
    many=(
        "The journey was {many} kilometres long.",
        "{last} had covered {many} kilometres.",
        "Behind the {thing} lay {many} kilometres.",
    ),
    why=(
        "{Reason}.",
        "The journey had a reason: {reason}.",
        "Whoever asked why got the same answer: {reason}.",
    ),
    restatements=(
        "{last} made the journey {why}.",
        "To travel {many} kilometres by {thing} is something that {where} will remember.",
        "The {thing} had held out for {many} kilometres.",
        "The people of {where} gave {who} and the {thing} a warm welcome.",
    ),
    quotes=(
        '"My back hurts, but my heart is light," said {last}.',
        '"Tomorrow I will sleep until noon," said {last}.',
        '"I would start again at once," {last} said.',
    ),
    distractors=(
        "{someone} once tried the same and gave up in {elsewhere}.",
        "On the way, the {thing} had to be repaired {number} times.",
        "In {elsewhere}, it had rained for {number} days.",
        "{someone}, who runs an inn, offered a free room.",
    ),
    summary=(
        "{who} travelled {many} kilometres by {thing} {why} and reached {where} {day}.",
        "{Day}, {who} arrived in {where} after {many} kilometres by {thing}. The trip was made {why}.",
        "By {thing}, {who} covered {many} kilometres to {where} {why} and arrived {day}.",
    ),
)
