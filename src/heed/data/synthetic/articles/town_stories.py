"""Stories of a town: openings, closures, hirings and elections."""

from heed.data.synthetic.articles.story import StoryKind

OPENING = StoryKind(
    name="opening",
    things=(
        "bakery",
        "library",
        "bookshop",
        "cinema",
        "clinic",
        "music school",
        "bicycle shop",
        "tea room",
        "art gallery",
    ),
    jobs=("a retired teacher", "a former sailor", "a nurse", "a carpenter", "a young cook", "a former bus driver"),
    amounts=(3, 40, 1),
    causes=(
        ("the old {thing} burned down three years ago", "because the old one had burned down"),
        ("the nearest {thing} used to be an hour away by bus", "to save people an hour on the bus"),
        ("young people kept leaving because there was nothing to do", "to give young people a reason to stay"),
        ("an aunt had left {last} more money than expected", "with money left by an aunt"),
        ("the old market hall had stood empty for ten years", "to bring life back to the old market hall"),
        ("many families have moved to the town", "because many families had moved there"),
        ("{last} had lost {their} own job in the spring", "after losing {their} own job"),
    ),
    lead=(
        "A new {thing} has opened in {where}.",
        "{where} now has {a_thing} of its own.",
        "People in {where} are talking about the new {thing} in the middle of town.",
        "The doors of a new {thing} in {where} opened {day}.",
        "After months of work, {who} has opened {a_thing} in {where}.",
    ),
    who=(
        "The owner is {who}, {job}.",
        "Behind it stands {who}, {job} from the same street.",
        "It belongs to {who}, {job} whom everyone seems to know.",
    ),
    day=(
        "The first visitors came {day}, and the queue reached the corner.",
        "{last} turned the key for the first time {day}.",
        "The opening was {day}, with music and free cake.",
    ),
    many=(
        "The {thing} gives work to {many} people.",
        "{last} has hired {many} people so far.",
        "A staff of {many} looks after the visitors.",
    ),
    why=(
        "{Reason}.",
        "The reason is simple: {reason}.",
        "{last} does not hide the reason: {reason}.",
    ),
    restatements=(
        "{last} says that the {thing} was opened {why}.",
        "With the {thing}, {last} has brought {many} jobs to {where}.",
        "Never before had {where} seen {a_thing} with {many} workers.",
        "The {thing} that {who} opened in {where} was full within an hour.",
    ),
    quotes=(
        '"I could not wait any longer," said {last}.',
        '"A town without {a_thing} is only half a town," said {last}.',
        '"We will see how it goes," {last} said with a smile.',
    ),
    distractors=(
        "In {elsewhere}, a similar plan failed after {number} months.",
        "{someone}, who lives across the street, has already been there twice.",
        "Last year, {someone} tried the same in {elsewhere}, but without luck.",
        "The building once had room for {number} horses.",
    ),
    summary=(
        "{who} opened {a_thing} in {where} {day} {why}. It gives work to {many} people.",
        "{Day}, {a_thing} with {many} workers opened in {where}. {who} started it {why}.",
        "A new {thing} in {where} employs {many} people. {who} opened it {day} {why}.",
    ),
)

CLOSURE = StoryKind(
    name="closure",
    things=("bridge", "swimming pool", "primary school", "railway station", "road tunnel", "town hall", "sports hall"),
    jobs=("the mayor", "the chief engineer of the town", "the head of the building office", "the safety officer"),
    amounts=(3, 90, 1),
    causes=(
        ("an inspector had found deep cracks in the concrete", "because of deep cracks in the concrete"),
        ("heavy rain had washed away part of the ground", "after heavy rain washed away part of the ground"),
        ("the electric cables are older than anyone thought", "because its electric cables are too old"),
        ("a lorry had crashed into the {thing} at night", "after a lorry crashed into it"),
        ("there had been a strong smell of gas", "because of a strong smell of gas"),
        ("a large swarm of bees has settled at the {thing}", "because a swarm of bees has settled there"),
        ("rust has weakened the steel of the {thing}", "because rust has weakened the steel"),
    ),
    lead=(
        "The {thing} in {where} is closed.",
        "Nobody may use the {thing} in {where} at the moment.",
        "A high fence now surrounds the {thing} in {where}.",
        "The {thing} in {where} was closed {day}.",
        "On the orders of {who}, {job}, the {thing} in {where} is closed.",
    ),
    who=(
        "The order came from {who}, {job}.",
        "It was {who}, {job}, who made the decision.",
        "{who}, {job}, signed the order.",
    ),
    day=(
        "The gates were locked {day}.",
        "{last} gave the order {day}, after a short meeting.",
        "The last people had to leave {day}.",
    ),
    many=(
        "The repairs will take {many} days.",
        "{last} expects the work to last {many} days.",
        "The fences will stay for {many} days.",
    ),
    why=(
        "{Reason}.",
        "The reason was soon known: {reason}.",
        "{last} explained why: {reason}.",
    ),
    restatements=(
        "{last} had the {thing} closed {why}.",
        "For {many} days, {where} will have to live without its {thing}.",
        "Never before had the {thing} in {where} been closed for {many} days.",
        "Not everyone in {where} agrees with {who} that the {thing} had to be closed.",
    ),
    quotes=(
        '"Safety comes first," said {last}.',
        '"I know that this is hard for many families," said {last}.',
        '"We had no other choice," {last} told reporters.',
    ),
    distractors=(
        "Buses to {elsewhere} run every {number} minutes until then.",
        "{someone}, who sells newspapers nearby, has lost {number} customers.",
        "In {elsewhere}, similar work once took {number} months.",
        "The {thing} was built {number} years ago.",
    ),
    summary=(
        "{who} closed the {thing} in {where} {day} {why}. It will not open again for {many} days.",
        "{Day}, {who} decided that the {thing} in {where} must stay closed for {many} days {why}.",
        "The {thing} in {where} is closed for {many} days {why}. {who} gave the order {day}.",
    ),
)

HIRING = StoryKind(
    name="hiring",
    things=("toy factory", "dairy", "shoe factory", "sawmill", "paper mill", "furniture factory", "chocolate factory"),
    jobs=("the owner", "the manager", "the new director"),
    amounts=(20, 400, 10),
    causes=(
        ("a large order has come from abroad", "because of a large order from abroad"),
        ("bigger machines are going to be installed", "because bigger machines are coming"),
        ("a rival in the next valley has closed", "because a rival has closed"),
        ("a film has made the products of the {thing} famous", "since a film made its products famous"),
        ("sales have doubled within a year", "because sales have doubled"),
        ("the {thing} is going to run at night as well", "in order to run at night as well"),
        ("half of the staff will retire soon", "because half of the staff will retire soon"),
    ),
    lead=(
        "The {thing} in {where} is growing.",
        "There is good news from the {thing} in {where}.",
        "Thanks to the {thing}, work will be easier to find in {where}.",
        "The {thing} in {where} surprised the town {day}.",
        "At the {thing} in {where}, {who} has big plans.",
    ),
    who=(
        "{who}, {job}, has big plans.",
        "The plan comes from {who}, {job}.",
        "It was {who}, {job}, who broke the news.",
    ),
    day=(
        "{last} told the workers {day}, during a break.",
        "The news spread through the town {day}.",
        "The plan was made public {day}.",
    ),
    many=(
        "In all, {many} people will be hired.",
        "There will be {many} new jobs.",
        "{last} wants to take on {many} people before the summer.",
    ),
    why=(
        "{Reason}.",
        "The reason is a happy one: {reason}.",
        "{last} named the reason at once: {reason}.",
    ),
    restatements=(
        "{last} needs more people {why}.",
        "With {many} new workers, the {thing} will be the largest employer in {where}.",
        "No {thing} in the region has ever hired {many} people at once.",
        "For {where}, the plan that {who} has for the {thing} is a gift.",
    ),
    quotes=(
        '"Anyone who likes to work with others is welcome," said {last}.',
        '"We have waited a long time for such a year," said {last}.',
        '"Our young people should not have to leave," {last} said.',
    ),
    distractors=(
        "The {thing} was founded by {someone} {number} years ago.",
        "In {elsewhere}, by contrast, {number} people lost their work this spring.",
        "{someone}, who retired last year, could hardly believe it.",
        "A bus from {elsewhere} will bring workers in the morning.",
    ),
    summary=(
        "The {thing} in {where} will hire {many} people {why}. {who} announced it {day}.",
        "{who} said {day} that the {thing} in {where} will create {many} jobs {why}.",
        "{Day}, {who} announced {many} new jobs at the {thing} in {where}. They are needed {why}.",
    ),
)

ELECTION = StoryKind(
    name="election",
    things=("fire brigade", "choir", "football club", "orchestra", "sailing club", "chess club", "theatre group"),
    jobs=("a baker", "a history teacher", "a retired doctor", "a young lawyer", "a bus driver", "a vet"),
    amounts=(30, 200, 1),
    causes=(
        ("the old leader had moved abroad", "because the old leader had moved abroad"),
        ("there had been a quarrel about money", "after a quarrel about money"),
        ("the post had been empty since the winter", "because the post had been empty since the winter"),
        ("the old leader had fallen ill", "because the old leader had fallen ill"),
        ("hardly anyone had been happy with the old leader", "because few had been happy with the old leader"),
        ("the rules allow a leader only four years in office", "because the rules allow only four years in office"),
        ("the old leader had gone over to a rival", "after the old leader went over to a rival"),
    ),
    lead=(
        "The {thing} in {where} has a new leader.",
        "The members of the {thing} in {where} have voted.",
        "A long meeting of the {thing} in {where} ended with applause.",
        "The {thing} in {where} chose a new leader {day}.",
        "{who} is going to lead the {thing} in {where}.",
    ),
    who=(
        "The choice fell on {who}, {job}.",
        "The members chose {who}, {job}.",
        "The winner is {who}, {job} with a loud laugh.",
    ),
    day=(
        "The vote was held {day} in the back room of an inn.",
        "{last} was elected {day}.",
        "The votes were counted {day}.",
    ),
    many=(
        "{last} received {many} votes.",
        "In the end, {many} members raised their hands for {last}.",
        "No fewer than {many} votes were cast for {last}.",
    ),
    why=(
        "{Reason}.",
        "The vote had become necessary: {reason}.",
        "Everybody knew the reason for the vote: {reason}.",
    ),
    restatements=(
        "A new leader was needed {why}.",
        "With {many} votes, {last} had a clear lead in the {thing}.",
        "The {thing} in {where} hopes for quiet years with {who}.",
        "Nobody in the {thing} had expected {many} votes for {last}.",
    ),
    quotes=(
        '"I will do my best for every member," said {last}.',
        '"First of all we need a new roof," said {last}.',
        '"I did not sleep at all last night," {last} said.',
    ),
    distractors=(
        "{someone}, the other candidate, received {fewer} votes.",
        "A similar group in {elsewhere} will vote next month.",
        "{someone} served coffee to everyone.",
        "The {thing} was founded {number} years ago.",
    ),
    summary=(
        "With {many} votes, {who} became leader of the {thing} in {where} {day}. A vote was needed {why}.",
        "The {thing} in {where} elected {who} as its leader {day} {why}. The winner got {many} votes.",
        "{Day}, {many} members of the {thing} in {where} voted for {who} as their leader {why}.",
    ),
)
