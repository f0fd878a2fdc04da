"""What a person and their assistant said to each other in ten weeks: 148 turns, all our own.

Most turns ask for work. What prompts ask for later was said beside that, once, in a turn among many
that share its words; long answers of general advice stand between.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from memorybus.agent.client import MemoryBus

_ADVICE: Final = """\
Certainly! Here is a structured way to approach this.

1. **Clarify the goal.** Write down what success looks like, who decides, and when it must be \
done. A plan without a date is a wish, and most delays begin with an unclear owner.
2. **List the constraints.** Budget, time, people, tools. For a server or a database that \
includes backups, ports and passwords; for a family plan the school calendar, doctors and \
birthdays.
3. **Compare options.** Give each a score for cost, risk and effort; discuss the two best with \
your team or your family, and record what you decided and why.
4. **Start small.** Try it for a week, measure, and adjust. Keep a checklist, and remember to \
review it every Monday.
5. **Communicate.** Send a short email or a text about what changes, and answer questions early.

If you like, I can turn this into a table, a calendar entry, or a message to the people involved."""

_CODE: Final = """\
Here is a version that retries with a growing pause:

```python
def call_with_retry(request, attempts=5):
    for attempt in range(attempts):
        try:
            return client.send(request, timeout=10)
        except TimeoutError:
            time.sleep(2 ** attempt)
    raise RuntimeError("the service did not answer")
```

It waits 1, 2, 4, 8 and 16 seconds. Use jitter if many workers start at once, log each attempt, \
and do not retry what the server refuses: a wrong password or a bad request stays wrong. For the \
deploy script the same holds; put the limits into the configuration, and keep the default port. \
Let me know whether I should add tests, an asynchronous version, or metrics for the dashboard."""

_TALK: Final = """
By the way, the wifi at home is called Birkenweg, password kiwi-lantern-42. | Got it.
Can you draft a stand-up note for today? | Yesterday: reviews. Today: the importer. Blockers: none.
Mia's school starts again on 24 August, at eight. | Good to know, I noted it.
What is the capital of Slovenia? | Ljubljana.
How should I plan the migration of our database? | @advice
We decided to stay on Postgres 16 for orders and not to move to MongoDB. | A sound choice.
I use Helix as my editor now, Vim only on servers. | Helix it is.
Write a regex for ISO dates. | `\\d{4}-\\d{2}-\\d{2}`
The staging database listens on port 6543 on host db-stg-02. | Understood.
Production runs on srv-17, behind nginx. | Noted.
Our deploys happen on Tuesdays and Thursdays only, never on Fridays. | I will keep that in mind.
Can you explain what a mutex is? | It lets one thread at a time into a section of code.
Lea, my wife, is allergic to penicillin. | I will remember that.
Translate "good evening" into Portuguese. | Boa noite.
My brother Timo lives in Graz with his two dogs, Pixel and Rocket. | Lovely names.
How do I get a toddler to sleep earlier? | @advice
The dentist moved my appointment to 17 April at 14:30. | Your calendar is updated.
Fix the retry code in the client, please. | @code
I had a long day, the kids were wild. | I hope the evening is quieter.
Our landlord is Frau Novak, her number is 0664 5550199. | Saved.
What's a synonym for "robust"? | Sturdy.
The API key for the weather service is in the vault under infra/weather. | Good place.
Can you summarise this article about soil? | It says that compost feeds soil life.
Mia plays handball on Wednesdays, training begins at 17:15. | Sounds fun.
I drive a grey Skoda Octavia, licence plate W-48213K. | Noted.
We named the new project Heron; the old one was Kestrel. | Heron, then.
How can I speed up our CI? | @advice
CI takes 22 minutes at the moment, mostly the browser tests. | That is long.
Anna from accounting wants the invoice numbers with a prefix from July on. | Understood.
The invoice prefix that Anna chose is RX-. | Fine.
Please shorten this paragraph for me. | Done: it has two sentences now.
I prefer tabs to be four spaces wide in Python. | As PEP 8 has it.
Is tea healthier than coffee? | Both are fine in moderation.
I take my coffee black, without sugar. | Simple and good.
My passport expires on 3 November 2027. | I can remind you.
Make a list of things to pack for a day at a lake. | Towel, sun cream, water, hat, a book.
We are flying to Lisbon on 12 July with TAP, flight TP1273. | Enjoy Lisbon!
The hotel in Lisbon is the Casa do Bairro near Alfama. | Sounds charming.
Rewrite the loop with a comprehension. | `[row.id for row in rows if row.active]`
Our team has five people: Sefa, Marek, Ines, Oliver and me. | A good size.
Sefa is on parental leave until October. | Congratulations to Sefa.
Marek owns the billing service, Ines the search. | I see.
What is the difference between TCP and UDP? | TCP delivers in order, UDP just sends.
Our budget for the kitchen is 14,500 euros. | A decent budget.
How do I choose a kitchen fitter? | @advice
The kitchen fitter is called Brandl, he comes on 9 March. | Great.
I weigh 82 kilos at the moment and want to run a half marathon in September. | Good goal.
My knee hurts when I run more than ten kilometres. | Please rest it.
The physiotherapist is Dr. Huber in Lindengasse. | Noted.
Can you write a haiku about rain? | Rain on the tin roof / a slow drum / the cat sleeps.
Our cat is called Momo and eats only the salmon food. | Picky Momo.
Momo has to go to the vet, Dr. Steiner, once a year for the vaccination. | I can remind you.
The garage code is 7719. | Understood.
Please check the grammar of this sentence. | It is correct.
The nightly backup goes to the Hetzner box in Helsinki at 02:30. | Good.
We restore a backup every first Monday to see that it works. | Excellent practice.
What is a good name for a variable that counts retries? | `attempts`.
Feature flags live in Unleash; the token is rotated every quarter. | Understood.
We log with structlog, in JSON, and ship it to Loki. | A nice stack.
The error budget of the checkout is 0.1 percent a month. | Noted.
How do error budgets work? | @advice
Explain monads in one sentence. | A monad chains steps that carry a context.
Last week Oliver broke the build with a missing migration. | It happens.
Oliver's birthday is on 30 May, he likes board games. | A board game, then.
For my mother's seventieth we rented the hut at Hallstatt. | How lovely.
My mother's name is Renate and she does not eat pork. | I will keep it in mind.
Convert 5 miles to kilometres. | About 8.05.
The car needs its inspection in February. | I can add a reminder.
I am left-handed. | Good to know.
Give me a dinner idea with lentils. | Dal with spinach and rice.
My shoe size is 44. | Saved.
Mia is reading the third volume of Narnia now. | A classic.
Mia's teacher is Herr Kaltenegger. | Noted.
What should I cook for guests who do not eat meat? | @advice
The guests on Saturday are Clara and Bo, both vegetarian. | Then no meat.
Clara works at the opera as a lighting designer. | Interesting work.
Can you name three stars? | Sirius, Vega, Rigel.
We pay 1,180 euros rent, due on the fifth. | Noted.
Our internet provider is Salt, the customer number is 88-20317. | Saved.
The alarm system has the installer PIN 0852. | Understood.
The TLS certificate of shop.example.net expires on 2 June. | I can remind you.
Certificates are renewed by certbot on the edge machine. | Good.
Write a commit message for this change. | "Retry timeouts of the client"
We use trunk-based development with short-lived branches. | A good practice.
Code review needs two approvals for payments, one elsewhere. | Noted.
What does HTTP 409 mean? | The request conflicts with the resource's state.
The rate limit of the partner API is 600 requests a minute. | Understood.
How can we stay under a rate limit? | @code
getInvoiceTotals is slow because it loads every line item. | An aggregate query would help.
The fix for getInvoiceTotals was an index on invoice_id. | Well found.
Kafka was too heavy for us, so we picked Redis Streams for events. | Reasonable.
We use Terraform for the infrastructure, the state is in an S3 bucket called tf-heron. | Noted.
The on-call phone is with Ines this month. | Good.
Name a novel by Stefan Zweig. | "Beware of Pity".
I cancelled the gym in Neubaugasse and go bouldering at Boulderbar instead. | Have fun.
Our neighbour Herr Fuchs waters the plants when we are away. | Kind of him.
My sister Jana is getting married on 6 September in Salzburg. | How wonderful.
I have to give a speech at Jana's wedding. | I can help with it.
How do I write a wedding speech? | @advice
Jana's fiancé is called Rafael, he is from Porto. | Nice.
Wir haben den Kindergarten für Paul ab September, er heißt Sonnenhügel. | Schön!
Paul hat eine Nussallergie. | Das merke ich mir.
Der Hausarzt heißt Doktor Weninger und hat donnerstags zu. | Notiert.
Die Mülltonnen werden am Freitag geleert. | Gut.
El fontanero se llama Ramiro y viene los lunes. | Anotado.
Mi contraseña de la biblioteca es girasol9. | Guardado.
Le code de l'immeuble de Claire est 45B12. | C'est noté.
妻の誕生日は12月3日です。 | 覚えておきます。
Compare SQLite and DuckDB for me. | One serves rows, the other analyses columns.
The monthly report is due on the last Friday, to Katharina. | Noted.
Katharina is our new head of engineering. | Congratulations to her.
Can you make this sound friendlier? | Of course: "Thanks a lot for waiting!"
My GitHub handle is jolindner. | Saved.
I work from home on Mondays and Fridays. | Good to know.
The office is in Mariahilfer Straße 88, third floor. | Noted.
The printer in the office is 10.0.4.23. | Noted.
What is the boiling point of ethanol? | 78.4 degrees Celsius.
The test user for the shop is demo@heron.test with the password tulip-garage. | Understood.
We gave up GraphQL in March, because caching was a pain. | Understandable.
The frontend is Svelte, the backend is FastAPI. | A light stack.
How do I structure a FastAPI project? | @advice
Queues with more than 10,000 messages page us at night. | A sensible alarm.
Give me a pun about clocks. | I had one, but it was about time.
Dad's surgery is on 21 May at the AKH. | I wish him well.
My father takes 5 mg of Ramipril every morning. | Noted.
Remind me how sourdough works. | Flour and water ferment, and the yeast lifts the dough.
I baked two loaves for Timo on Sunday. | Delicious.
The thermostat upstairs is set to 20.5 degrees. | Cosy.
Our electricity meter is read on the first of each quarter. | Noted.
What is the plural of "octopus"? | Octopuses.
My desk is 160 by 80 and I want a wider one. | Measure the room first.
The tax adviser is Mag. Pichler, we see her every March. | Noted.
The tax number of the company is 12 345/6789. | Saved.
I donated 250 euros to Doctors Without Borders in December. | Generous.
Can you sort these names? | Ana, Ben, Cleo, Dov.
My favourite restaurant is the Thai place Mamamon. | Good taste.
The recurring meeting with the Heron partners is on the second Tuesday, ten o'clock. | Noted.
I don't like coriander at all. | No coriander.
The bike is locked with code 3391, in the yard. | Understood.
How do I patch a bicycle tube? | @advice
I read about octopuses all evening. | Fascinating animals.
The Heron launch moved from May to 19 June. | I have noted the new date.
Draft a message that the launch moves. | "The launch moves; details follow."
My blood group is 0 negative. | Important to know.
The children's paediatrician is Dr. Amsel. | Noted.
What time is it in Tokyo? | Eight hours ahead in winter.
I sold the old bike to Marek for 120 euros. | A fair price.
Thanks for your help this week. | You're welcome!
"""


class Turn(msgspec.Struct, frozen=True):
    """What was said, and by number when: two a day."""

    user: str
    assistant: str
    at: int


def turns() -> Iterator[Turn]:
    """Yield all turns in their order."""
    began = datetime(2026, 1, 5, 8, tzinfo=UTC)
    long = {"@advice": _ADVICE, "@code": _CODE}
    for number, line in enumerate(_TALK.strip().splitlines()):
        user, _, assistant = line.partition(" | ")
        at = began + timedelta(hours=12 * number)
        yield Turn(user, long.get(assistant, assistant), int(at.timestamp() * 1_000))


def publish(bus: MemoryBus) -> None:
    """Publish all turns, ten a session."""
    for number, turn in enumerate(turns()):
        session = bus.session(f"talk-{number // 10}", warm=False, at=turn.at)
        session.turn_completed(turn.user, turn.assistant, ordinal=number, at=turn.at)


class Prompt(msgspec.Struct, frozen=True):
    """A prompt, and words of the memory that answers it; "" if there is none."""

    text: str
    right: str = ""


PROMPTS: Final = (
    Prompt("what's my wifi password?", "kiwi-lantern-42"),
    Prompt("when does Mia's school start again?", "24 August"),
    Prompt("what did we decide about the db?", "stay on Postgres 16"),
    Prompt("which editor do I use", "Helix as my editor"),
    Prompt("what port does the staging db listen on?", "port 6543"),
    Prompt("whats on my calendar on april 17?", "17 April at 14:30"),
    Prompt("can we deploy on a friday", "never on Fridays"),
    Prompt("is Lea allergic to anything?", "penicillin"),
    Prompt("what are timos dogs called", "Pixel and Rocket"),
    Prompt("how long does CI take?", "22 minutes"),
    Prompt("which host is production on? srv-17 or srv-18", "srv-17"),
    Prompt("why is getInvoiceTotals slow", "loads every line item"),
    Prompt("did we pick kafka or redis streams?", "picked Redis Streams"),
    Prompt("Book a table for my favourite restaurant on Saturday at 7.", "Mamamon"),
    Prompt("Write an email to our landlord that the heating is broken again.", "Frau Novak"),
    Prompt("who is on call this month?", "on-call phone"),
    Prompt("when is dads surgery", "21 May"),
    Prompt("Who is Katharina?", "head of engineering"),
    Prompt("when does our flight to Lisbon leave, and which airline is it?", "TP1273"),
    Prompt("where do the backups go?", "Hetzner box"),
    Prompt("when does the TLS cert of the shop expire?", "2 June"),
    Prompt("when's the heron launch now?", "19 June"),
    Prompt("What should I cook on Saturday for Clara and Bo?", "both vegetarian"),
    Prompt("how do I take my coffee", "coffee black"),
    Prompt("what size shoes do I wear?", "shoe size is 44"),
    Prompt("Wogegen ist Paul allergisch?", "Nussallergie"),
    Prompt("Wann hat der Hausarzt zu?", "donnerstags"),
    Prompt("¿Cuál es mi contraseña de la biblioteca?", "girasol9"),
    Prompt("Quel est le code de l'immeuble de Claire ?", "45B12"),
    Prompt("妻の誕生日はいつですか？", "12月3日"),
    Prompt("remind me what the rate limit of the partner api is", "600 requests"),
    Prompt("What is the garage code?", "garage code is 7719"),
    Prompt("what's the password of the test user in the shop?", "tulip-garage"),
    Prompt("Which submarine did the admiral sink?"),
    Prompt("how many goldfish does the mayor own"),
    Prompt("ok, thanks"),
)
